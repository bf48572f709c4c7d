package compare

import (
	"context"
	"fmt"

	"sagabench/bench/internal/result"
)

// Measure makes one run of a side. Pairs count from 1.
type Measure func(ctx context.Context, side Side, pair int) (result.Summary, error)

// Interleave runs two sides in pairs, in the order A B B A and so on, so that a change of
// the machine affects both. It appends the runs of complete pairs to the sides. The error
// says why there are fewer than asked for.
func Interleave(ctx context.Context, a, b *Side, pairs int, measure Measure) error {
	for pair := 1; pair <= pairs; pair++ {
		order := []*Side{a, b}
		if pair%2 == 0 {
			order = []*Side{b, a}
		}
		var runs [2]result.Summary
		for i, side := range order {
			var err error
			runs[i], err = measure(ctx, *side, pair)
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("interrupted in pair %d of %d", pair, pairs)
			case err != nil:
				return fmt.Errorf("variant %s, in pair %d of %d: %w", side.Name, pair, pairs, err)
			}
		}
		for i, side := range order {
			side.Runs = append(side.Runs, runs[i])
		}
	}
	return nil
}
