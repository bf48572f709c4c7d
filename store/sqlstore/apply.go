package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gorm.io/gorm"

	"sagabench/store"
)

// Bounds of one transaction. MariaDB makes a temporary table of a list of 1000
// or more, and takes statements of up to 16 MiB by default; escaping may double
// what a statement holds.
const (
	maxChunkChanges = 500
	maxChunkBytes   = 5 << 20
)

// maxTries bounds how often a transaction that had no effect is tried.
const maxTries = 20

// Apply implements store.Applier.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs := store.CheckBatch(changes)
	if err := s.enter(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	for _, c := range chunks(changes, errs) {
		if err := s.applyChunk(limited, &c); err != nil {
			c.fail(s.failure(ctx, "apply", err))
		}
		c.report(errs)
	}
	return errs
}

// chunk is what one transaction writes, in the order of the gids: two that lock
// the same rows in the same order do not lock each other out.
type chunk struct {
	creates     []*job[*store.Create]
	transitions []*job[*store.Transition]
}

// job is one change on its way.
type job[C store.Change] struct {
	change C
	at     int // in the batch
	err    error
}

// chunks sorts and cuts the valid changes.
func chunks(changes []store.Change, errs []error) []chunk {
	order := make([]int, 0, len(changes))
	for i := range changes {
		if errs[i] == nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(changes[a].Gid(), changes[b].Gid()) })
	var all []chunk
	count, bytes := maxChunkChanges, 0
	for _, i := range order {
		size := sizeOf(changes[i])
		if count == maxChunkChanges || bytes+size > maxChunkBytes {
			all = append(all, chunk{})
			count, bytes = 0, 0
		}
		count++
		bytes += size
		c := &all[len(all)-1]
		switch change := changes[i].(type) {
		case *store.Create:
			c.creates = append(c.creates, &job[*store.Create]{change: change, at: i})
		case *store.Transition:
			c.transitions = append(c.transitions, &job[*store.Transition]{change: change, at: i})
		default:
			panic(fmt.Sprintf("sql: a change of type %T: package store has two", change))
		}
	}
	return all
}

// sizeOf is about how long a change is in a statement, before escaping.
func sizeOf(change store.Change) int {
	switch c := change.(type) {
	case *store.Create:
		return 300 + 2*c.Steps + len(c.Body)
	case *store.Transition:
		return 300 + 2*store.MaxSteps + len(c.Note)
	default:
		return 0
	}
}

func (c *chunk) fail(err error) {
	for _, j := range c.creates {
		j.err = err
	}
	for _, j := range c.transitions {
		j.err = err
	}
}

func (c *chunk) report(errs []error) {
	for _, j := range c.creates {
		errs[j.at] = j.err
	}
	for _, j := range c.transitions {
		errs[j.at] = j.err
	}
}

// applyChunk writes all at once what nothing stands against, and then looks at
// the rest one by one, in a transaction.
func (s *Store) applyChunk(ctx context.Context, c *chunk) error {
	var rest chunk
	err := s.persist(ctx, func() (err error) {
		rest, err = s.dialect.apply(s.db.WithContext(ctx), c, s.keep())
		return err
	})
	if err != nil || len(rest.creates)+len(rest.transitions) == 0 {
		return err
	}
	return s.transact(ctx, func(tx *gorm.DB) error {
		if err := s.create(tx, rest.creates); err != nil {
			return err
		}
		return s.transition(tx, rest.transitions)
	})
}

// keep is the retention in milliseconds.
func (s *Store) keep() int64 { return millis(s.cfg.Retention) }

// transact runs f in a transaction, again as long as that had no effect. So f
// may run more than once, and what it says holds only if the error is nil.
func (s *Store) transact(ctx context.Context, f func(tx *gorm.DB) error) error {
	return s.persist(ctx, func() error { return s.db.WithContext(ctx).Transaction(f) })
}

// persist tries f until it had an effect.
func (s *Store) persist(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == maxTries || !s.dialect.hasNoEffect(err) {
			return err
		}
		// Whoever it lost against is about to commit; not all losers at once.
		select {
		case <-time.After(rand.N(time.Duration(try) * 2 * time.Millisecond)):
		case <-ctx.Done():
			return err
		}
	}
}
