package compare

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
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

// Seed returns the seed of the random arrivals of a pair of the comparison with that ID. Both
// runs of the pair take it, so that they differ by the side alone.
func Seed(id string, pair int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, pair))
	return binary.LittleEndian.Uint64(sum[:])>>11 | 1 // a number of JSON holds 53 bits; 0 means any
}

// sharedSeeds returns the seed of each pair, or none unless the runs of each pair share one.
func sharedSeeds(a, b []result.Summary) []uint64 {
	seeds := []uint64{}
	for i := range a {
		ofA, ofB := a[i].Load.Seed, b[i].Load.Seed
		if ofA == nil || ofB == nil || *ofA != *ofB {
			return []uint64{}
		}
		seeds = append(seeds, *ofA)
	}
	return seeds
}
