// Package fill preloads a store with finished sagas, so that a run can be measured on a
// store that has been in use for a while: what a table of millions costs a saga, how much
// memory they take, and whether their removal keeps up.
package fill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var begun, done atomic.Int64
	var working sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		working.Go(func() {
			for errs[w] == nil && ctx.Err() == nil {
				last := begun.Add(batch)
				size := min(batch, n-(last-batch))
				if size <= 0 {
					return
				}
				if errs[w] = put(ctx, s, int(size), steps, body); errs[w] != nil {
					stop()
					return
				}
				report(done.Add(size))
			}
		})
	}
	working.Wait()
	if err := errors.Join(errs...); err != nil {
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
