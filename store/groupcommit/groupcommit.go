// Package groupcommit turns concurrent callers into batches, over any store.
//
// While one batch is on its way to the store the next one fills; when the
// answer is there, what has come together is sent. There is no timer: a caller
// alone is served at once, and under load a batch is as large as what arrives
// during one round trip. The engine does its expensive part, a script's
// dispatch or an fsync, once a batch. A caller whom nobody else keeps company
// writes from its own goroutine, for waking another and being woken by it costs
// some 15 µs on an idle machine.
//
// # Guarantees
//
//   - A caller gets the error of its own change, exactly once, after the store
//     has answered for it.
//   - Changes of one gid reach the store in the order in which they entered the
//     queue, each in a later batch than the one before. Apply enters it at once
//     while there is room; among callers that wait for room none is first.
//   - A caller whose context ends gets that error at once. If its change has
//     not been taken into a batch it never will be, and the error says so
//     (ErrNotSent); else its outcome is unknown. The others are not affected.
//     Of a caller alone the store itself sees the context, and how soon it
//     notices its end is the store's affair.
//   - A batch is bounded in changes and in bytes ([MaxBatchBytes]): a store has
//     to send it, and a server to read it, within one Timeout.
//   - The queue is bounded: callers beyond it wait.
//   - Close lets every change that was accepted be answered first.
//
// It does not retry: see package store. A store that panics ends the process, as
// a panic does anywhere else: nobody is left waiting for it.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sagabench/store"
)

// ErrNotSent marks the error of a change that was given up before it was sent:
// it was not and will not be applied.
var ErrNotSent = errors.New("the change was not sent")

// Config bounds the batches.
type Config struct {
	MaxBatch int           // changes per batch at most
	MaxQueue int           // changes waiting at most, over all flushers; callers beyond wait
	Flushers int           // batches under way at once; a gid always has the same flusher
	Timeout  time.Duration // for one batch, after which its outcome is unknown
	// Observe, if set, is called after every batch, from several goroutines.
	Observe func(changes int, took time.Duration)
}

// MaxBatchBytes bounds a batch by the bodies and notes of its changes. One that is
// larger by itself is sent alone.
const MaxBatchBytes = 8 << 20

// DefaultConfig suits every store of this project.
func DefaultConfig() Config {
	return Config{MaxBatch: 512, MaxQueue: 16384, Flushers: 1, Timeout: 10 * time.Second}
}

// Committer batches. Its Apply takes one change, for a caller of many has its
// batch already.
type Committer struct {
	lanes []*lane
	done  sync.WaitGroup
}

// New starts a committer in front of a store, which must outlive it.
func New(to store.Applier, cfg Config) (*Committer, error) {
	for _, f := range []struct {
		name  string
		value int
	}{{"max batch", cfg.MaxBatch}, {"max queue", cfg.MaxQueue}, {"flushers", cfg.Flushers}, {"timeout", int(cfg.Timeout)}} {
		if f.value < 1 {
			return nil, fmt.Errorf("group commit: %w: %s: %d, at least 1", store.ErrInvalid, f.name, f.value)
		}
	}
	c := &Committer{}
	for range cfg.Flushers {
		l := newLane(to, cfg, max(1, cfg.MaxQueue/cfg.Flushers))
		c.lanes = append(c.lanes, l)
		c.done.Go(l.run)
	}
	return c, nil
}

// Apply has the change written with whatever else arrives, and waits for it.
func (c *Committer) Apply(ctx context.Context, change store.Change) error {
	l := c.lanes[laneOf(change.Gid(), len(c.lanes))]
	if l.enterAlone() {
		return l.applyAlone(ctx, change)
	}
	r, err := l.enqueue(ctx, change)
	if err != nil {
		return err
	}
	select {
	case err := <-r.done:
		l.free(r)
		return err
	case <-ctx.Done():
		return l.giveUp(ctx, r)
	}
}

// QueueLength is how many changes have not been taken into a batch yet.
func (c *Committer) QueueLength() int {
	n := 0
	for _, l := range c.lanes {
		n += l.waiting()
	}
	return n
}

// Close refuses new changes with store.ErrClosed and returns when all that
// were accepted have their answer. The store stays open.
func (c *Committer) Close() {
	for _, l := range c.lanes {
		l.close()
	}
	c.done.Wait()
}

func laneOf(gid string, lanes int) int {
	if lanes == 1 {
		return 0
	}
	hash := uint32(2166136261) // FNV-1a
	for i := range len(gid) {
		hash = (hash ^ uint32(gid[i])) * 16777619
	}
	// The upper bits: the lower ones already decide the shard in some stores.
	return int(hash >> 16 % uint32(lanes))
}
