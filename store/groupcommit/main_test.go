package groupcommit

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(panicVariable) != "" {
		applyToStoreThatPanics()
	}
	goleak.VerifyTestMain(m)
}

// hand is an Applier whose answers the test gives by hand.
type hand struct {
	batches chan *batch
	over    chan struct{} // closed when the test will give no more
}

// batch is one call of a hand's Apply.
type batch struct {
	ctx     context.Context
	changes []store.Change
	answer  chan []error
}

func newHand() *hand { return &hand{batches: make(chan *batch), over: make(chan struct{})} }

func (h *hand) Apply(ctx context.Context, changes []store.Change) []error {
	b := &batch{ctx: ctx, changes: slices.Clone(changes), answer: make(chan []error)}
	select {
	case h.batches <- b:
	case <-h.over:
	}
	select {
	case errs := <-b.answer:
		return errs
	case <-h.over:
		return nil
	}
}

// done answers that all went well.
func (b *batch) done() { b.answer <- make([]error, len(b.changes)) }

// names are the changes of a batch as change made them.
func (b *batch) names() []string {
	var names []string
	for _, c := range b.changes {
		names = append(names, name(c))
	}
	return names
}

// applierFunc is an Applier made of a function.
type applierFunc func(ctx context.Context, changes []store.Change) []error

func (f applierFunc) Apply(ctx context.Context, changes []store.Change) []error {
	return f(ctx, changes)
}

// change is the n-th of a gid.
func change(gid string, n int) store.Change {
	return &store.Transition{GID: gid, Epoch: uint32(n), From: store.StatusSubmitted, To: store.StatusSubmitted}
}

// largeChange is one with a note of so many bytes.
func largeChange(gid string, n, bytes int) store.Change {
	c := change(gid, n).(*store.Transition)
	c.Note = large[:bytes]
	return c
}

var large = strings.Repeat("n", MaxBatchBytes+1)

func name(c store.Change) string {
	return fmt.Sprintf("%s%d", c.Gid(), c.(*store.Transition).Epoch)
}

// config is the default with limits that a test reaches.
func config(maxBatch, maxQueue, flushers int) Config {
	cfg := DefaultConfig()
	cfg.MaxBatch, cfg.MaxQueue, cfg.Flushers = maxBatch, maxQueue, flushers
	return cfg
}

// inBubble runs f on a committer in front of a hand, in a bubble in which
// synctest.Wait tells that everybody is waiting.
func inBubble(t *testing.T, cfg Config, f func(t *testing.T, c *Committer, h *hand)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		c, err := New(h, cfg)
		require.NoError(t, err)
		defer c.Close()
		defer close(h.over) // also when the test fails with calls under way
		f(t, c, h)
	})
}

// call applies a change in the background and returns once it is on its way.
func call(ctx context.Context, c *Committer, change store.Change) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- c.Apply(ctx, change) }()
	synctest.Wait()
	return answer
}

// pending fails unless the call has not been answered yet.
func pending(t *testing.T, answer <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-answer:
		t.Fatalf("was answered: %v", err)
	default:
	}
}

// stopwatch tells how much of the bubble's time has passed.
func stopwatch() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
