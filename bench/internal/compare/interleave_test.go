package compare_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
)

func TestSeed_IsOfTheComparisonAndThePair(t *testing.T) {
	t.Parallel()
	seen := map[uint64]bool{}
	for _, id := range []string{"20261122-120000-compare", "20261122-120001-compare"} {
		for pair := 1; pair <= 50; pair++ {
			seed := compare.Seed(id, pair)
			require.Equal(t, seed, compare.Seed(id, pair))
			require.Positive(t, seed)
			require.Less(t, seed, uint64(1)<<53)
			seen[seed] = true
		}
	}
	require.Len(t, seen, 100)
}

func TestInterleave_KeepsCompletePairs(t *testing.T) {
	t.Parallel()
	broken := errors.New("server gone")
	for name, c := range map[string]struct {
		failAt, interruptAt int // number of the run, counted from 1
		made                []string
		pairs               int
		err                 string
	}{
		"all":         {0, 0, []string{"1A", "1B", "2B", "2A", "3A", "3B"}, 3, ""},
		"failed":      {4, 0, []string{"1A", "1B", "2B", "2A"}, 1, "variant A, in pair 2 of 3: server gone"},
		"interrupted": {0, 3, []string{"1A", "1B", "2B"}, 1, "interrupted in pair 2 of 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var made []string
			a, b := compare.Side{Name: "A"}, compare.Side{Name: "B"}
			err := compare.Interleave(ctx, &a, &b, 3, func(_ context.Context, side compare.Side, pair int) (s result.Summary, err error) {
				s.Run.ID = fmt.Sprint(pair, side.Name)
				switch made = append(made, s.Run.ID); len(made) {
				case c.failAt:
					err = broken
				case c.interruptAt:
					interrupt()
				}
				return s, err
			})
			require.Equal(t, c.made, made)
			require.Len(t, a.Runs, c.pairs)
			require.Len(t, b.Runs, c.pairs)
			for i := range a.Runs {
				require.Equal(t, fmt.Sprint(i+1, "A"), a.Runs[i].Run.ID)
				require.Equal(t, fmt.Sprint(i+1, "B"), b.Runs[i].Run.ID)
			}
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}
