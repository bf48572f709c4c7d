// Package fill preloads a store with finished sagas, so that a run can be measured on a
// store that has been in use for a while: what a table of millions costs a saga, how much
// memory they take, and whether their removal keeps up.
package fill

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sagabench/saga"
	"sagabench/store"
)

const (
	batch   = 500 // sagas
	writers = 2   // concurrent batches
)

// Run writes n succeeded sagas through the store's Apply. Each has the given body. Run
// calls report with the number of sagas so far, from several goroutines. If ctx ends, the
// sagas so far stay in the store.
func Run(ctx context.Context, s store.Store, n int64, steps int, body []byte, report func(done int64)) error {
	writing, until := errgroup.WithContext(ctx)
	writing.SetLimit(writers)
	var done atomic.Int64
	for first := int64(0); first < n && until.Err() == nil; first += batch {
		writing.Go(func() error {
			size := min(batch, n-first)
			if err := put(until, s, int(size), steps, body); err != nil {
				return err
			}
			report(done.Add(size))
			return nil
		})
	}
	if err := writing.Wait(); err != nil {
		return fmt.Errorf("fill the store: after %d sagas: %w", done.Load(), err)
	}
	return ctx.Err()
}

// put writes sagas: it creates them, then ends them.
func put(ctx context.Context, s store.Store, n, steps int, body []byte) error {
	marks := make([]store.SetMark, steps)
	for i := range marks {
		marks[i] = store.SetMark{Branch: store.Action(i), Mark: store.MarkSucceeded}
	}
	creates, ends := make([]store.Change, n), make([]store.Change, n)
	for i := range n {
		gid := saga.NewGID()
		creates[i] = &store.Create{GID: gid, Body: body, Steps: steps, Owner: "fill", Due: time.Hour}
		ends[i] = &store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded, Marks: marks}
	}
	for _, changes := range [][]store.Change{creates, ends} {
		for _, err := range s.Apply(ctx, changes) {
			if err != nil {
				return err // most likely all have the same
			}
		}
	}
	return nil
}
