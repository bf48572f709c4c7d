package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScale_TicksAreRoundAndFew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale         Scale
		lowest, above float64
		want          string
	}{
		{Linear, 3, 24, "0 5 10 15 20 25"},
		{Linear, 1, 1, "0 0.2 0.4 0.6 0.8 1"},
		{Linear, 0, 0, "0 0.2 0.4 0.6 0.8 1"},
		{Linear, -0.1, 0.1, "-0.1 -0.05 0 0.05 0.1"},
		{Linear, 100, 11_900, "0 2,500 5,000 7,500 10,000 12,500"},
		{Log, 1, 20, "1 2 5 10 20"},
		{Log, 5, 5, "5 10"},
		{Log, 0.3, 2000, "1 10 100 1,000"},
		{Log, 1e-6, 1e6, "1e-06 0.001 1 1,000 1,000,000"},
		{Log2, 1, 512, "1 2 4 8 16 32 64 128 256 512"},
		{Log2, 3, 3, "2 4"},
		{Nines, 0, 99.95, "p0 p90 p99 p99.9"},
		{Nines, 0, 50, "p0 p90"},
	} {
		s := c.scale.span(c.lowest, c.above, true)
		var labels []string
		for _, tick := range s.ticks {
			if tick.label != "" {
				labels = append(labels, tick.label)
			}
		}
		require.Equal(t, c.want, strings.Join(labels, " "), c)
		require.LessOrEqual(t, s.from, c.scale.place(c.lowest), c)
		require.GreaterOrEqual(t, s.to, c.scale.place(c.above)-1e-9, c)
		require.Less(t, s.from, s.to, c)
	}
}
