package load

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseProfile_ReadsRatesStepsAndRamps(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Profile{
		"": {}, "500": Constant(500), "500/s": Constant(500), "30000/m": Constant(500),
		"50/100ms": Constant(500), "1.5/s": Constant(1.5), "100/s,200,24000/m": Steps(100, 200, 400),
		"100/s..2000/s": Ramp(100, 2000), "20..1.5/s": Ramp(20, 1.5),
	} {
		got, err := ParseProfile(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseProfile(got.String())
		require.NoError(t, err, text)
		require.Equal(t, want, again, text)
	}
	for _, text := range []string{
		"x", "0", "0/s", "500/s..", "-1", "1/", "1/0s", "1/x", "NaN", "1e12/s", "/s", "1,", "1,0,2", "1,2..3", "1..2..3", "..2", "1..", "0..5", "Inf",
	} {
		_, err := ParseProfile(text)
		require.ErrorContains(t, err, fmt.Sprintf("rate: %q", text))
	}
}
