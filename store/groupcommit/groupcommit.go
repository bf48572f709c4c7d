// Package groupcommit collects the changes of concurrent callers into batches, for
// any store.
//
// While the store writes one batch, the next one fills. It is sent when the store
// has answered. There is no timer: a single caller is served at once, and under load
// a batch holds what arrived during one round trip. The store does its expensive
// part, dispatching a script or an fsync, once per batch. A single caller writes on
// its own goroutine: waking the flusher and being woken takes about 15 µs on an idle
// machine.
//
// # Guarantees
//
//   - A caller gets the error of its own change, once, after the store answered.
//   - Changes of one gid reach the store in the order in which they entered the
//     queue, each in a later batch than the previous one. Callers that wait for a
//     slot in the queue enter it in no particular order.
//   - A caller whose context ends gets that error at once. If the change was not in a
//     batch yet, it is never written and the error wraps ErrNotSent. Otherwise its
//     outcome is unknown. Other callers are not affected. A single caller passes its
//     context to the store, which may take longer to notice its end.
//   - A batch is bounded in changes and in bytes ([MaxBatchBytes]), so that it can be
//     sent and read within Timeout.
//   - The queue is bounded. Further callers wait.
//   - Close returns after every accepted change was answered.
//
// It does not retry: see package store. A panic in the store ends the process.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"sagabench/store"
)

// ErrNotSent is wrapped by the error of a change whose caller stopped waiting before
// it was sent. The change is never applied.
var ErrNotSent = errors.New("the change was not sent")

// Config sets the limits of batches and queues.
type Config struct {
	MaxBatch int           // changes per batch
	MaxQueue int           // changes waiting, over all partitions; further callers wait
	Flushers int           // batches being written at once, for each partition of the store
	Timeout  time.Duration // of one batch; its outcome is unknown afterwards
	// Observe, if set, is called after every batch, by several goroutines.
	Observe func(changes int, took time.Duration)
}

// MaxBatchBytes limits the bodies and notes of a batch. A larger change is a batch of
// its own.
const MaxBatchBytes = 8 << 20

// DefaultConfig suits every store of this project.
func DefaultConfig() Config {
	return Config{MaxBatch: 512, MaxQueue: 16384, Flushers: 1, Timeout: 10 * time.Second}
}

// Committer collects changes into batches. Apply takes one change: a caller of many
// has a batch already.
type Committer struct {
	partitions []*partition
	flushers   int
	ofStore    func(gid string) int // the store's partition
	seed       maphash.Seed
	done       sync.WaitGroup
}

// New starts a committer that writes to a store. Close it before the store.
func New(to store.Applier, cfg Config) (*Committer, error) {
	for _, f := range []struct {
		name  string
		value int
	}{{"max batch", cfg.MaxBatch}, {"max queue", cfg.MaxQueue}, {"flushers", cfg.Flushers}, {"timeout", int(cfg.Timeout)}} {
		if f.value < 1 {
			return nil, fmt.Errorf("group commit: %w: %s: %d, at least 1", store.ErrInvalid, f.name, f.value)
		}
	}
	c := &Committer{flushers: cfg.Flushers, ofStore: func(string) int { return 0 }, seed: maphash.MakeSeed()}
	partitions := cfg.Flushers
	if s, ok := to.(store.Partitioned); ok {
		partitions *= s.Partitions()
		c.ofStore = s.PartitionOf
	}
	for range partitions {
		p := newPartition(to, cfg, max(1, cfg.MaxQueue/partitions))
		c.partitions = append(c.partitions, p)
		c.done.Go(p.run)
	}
	return c, nil
}

// Apply writes a change in a batch with others and returns its error.
func (c *Committer) Apply(ctx context.Context, change store.Change) error {
	p := c.partitionOf(change.Gid())
	if p.tryFastPath() {
		return p.applyFast(ctx, change)
	}
	r, err := p.enqueue(ctx, change)
	if err != nil {
		return err
	}
	select {
	case err := <-r.done:
		// An abandoned request is not reused: the flusher may still write to it.
		r.change = nil
		p.requests.Put(r)
		return err
	case <-ctx.Done():
		return p.abandon(ctx, r)
	}
}

func (c *Committer) partitionOf(gid string) *partition {
	flusher := int(maphash.String(c.seed, gid) % uint64(c.flushers))
	return c.partitions[c.ofStore(gid)*c.flushers+flusher]
}

// QueueLength returns the number of changes that wait for a batch.
func (c *Committer) QueueLength() int {
	n := 0
	for _, p := range c.partitions {
		n += p.waiting()
	}
	return n
}

// Close returns when all accepted changes are answered. New changes get
// store.ErrClosed. The store stays open.
func (c *Committer) Close() {
	for _, p := range c.partitions {
		p.close()
	}
	c.done.Wait()
}
