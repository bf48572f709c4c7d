package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
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
		s.write(limited, c)
		c.report(errs)
	}
	return errs
}

// waryFor is how long the store expects locked rows after it last met one: longer
// than the pause after which a coordinator tries a change again.
const waryFor = 10 * time.Second

// write applies a chunk. If a row stays locked by somebody else, only the changes
// of such rows fail. As long as there may be some, none is waited for.
func (s *Store) write(ctx context.Context, c chunk) {
	if until := s.waryUntil.Load(); until == 0 || time.Now().UnixNano() > until {
		rest, err := s.applyChunk(ctx, c, false)
		if !s.dialect.isLocked(err) {
			s.fail(ctx, rest, err)
			return
		}
		c = rest
	}
	s.writeAround(ctx, c)
}

// writeAround applies a chunk without waiting for locks, in halves when it meets
// one, until it is down to the changes whose rows are locked. These it fails.
func (s *Store) writeAround(ctx context.Context, c chunk) {
	c.fail(nil) // what a transaction said that then had no effect
	rest, err := s.applyChunk(ctx, c, true)
	switch {
	case !s.dialect.isLocked(err):
		s.fail(ctx, rest, err)
	case rest.size() == 1:
		s.waryUntil.Store(time.Now().Add(waryFor).UnixNano())
		s.fail(ctx, rest, fmt.Errorf("another transaction has locked it: %w", err))
	default:
		a, b := rest.halves()
		s.writeAround(ctx, a)
		s.writeAround(ctx, b)
	}
}

// fail fails what an error, if it is one, has kept from being written.
func (s *Store) fail(ctx context.Context, c chunk, err error) {
	if err != nil {
		c.fail(s.failure(ctx, "apply", err))
	}
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

func (c *chunk) size() int { return len(c.creates) + len(c.transitions) }

// halves parts creates from transitions, or else those that there are.
func (c *chunk) halves() (a, b chunk) {
	if len(c.creates) > 0 && len(c.transitions) > 0 {
		return chunk{creates: c.creates}, chunk{transitions: c.transitions}
	}
	i, j := len(c.creates)/2, len(c.transitions)/2
	return chunk{c.creates[:i], c.transitions[:j]}, chunk{c.creates[i:], c.transitions[j:]}
}

func (c *chunk) gids() []string { return append(gidsOf(c.creates), gidsOf(c.transitions)...) }

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
// the rest one by one, in a transaction. What an error is about is returned beside
// it. With noWait a locked row is one.
func (s *Store) applyChunk(ctx context.Context, c chunk, noWait bool) (rest chunk, err error) {
	err = s.persist(ctx, func() (err error) {
		rest, err = s.dialect.apply(s.db.WithContext(ctx), &c, s.keep(), noWait)
		return err
	})
	if err != nil {
		return c, err
	}
	if rest.size() == 0 {
		return rest, nil
	}
	err = s.transact(ctx, func(tx *gorm.DB) error {
		if noWait {
			if err := s.dialect.setNoWait(tx, &rest); err != nil {
				return err
			}
		}
		if err := s.create(tx, rest.creates); err != nil {
			return err
		}
		return s.transition(tx, rest.transitions)
	})
	if err != nil {
		return rest, err
	}
	// A refusal tells what is there, and what is there already was not written.
	return rest, s.awaitFlush(ctx)
}

// keep is the retention in milliseconds.
func (s *Store) keep() int64 { return millis(s.cfg.Retention) }

// transact runs f in a transaction, again as long as that had no effect. So f
// may run more than once, and what it says holds only if the error is nil.
func (s *Store) transact(ctx context.Context, f func(tx *gorm.DB) error) error {
	return s.persist(ctx, func() error {
		return s.db.WithContext(ctx).Connection(func(tx *gorm.DB) error {
			return inTransaction(tx.Session(&gorm.Session{NewDB: true}), f)
		})
	})
}

// inTransaction is gorm's Transaction but for its end: the client of MySQL would
// wait for an answer to COMMIT and ROLLBACK, and for nothing else, beyond the end
// of the context.
func inTransaction(tx *gorm.DB, f func(tx *gorm.DB) error) (err error) {
	ended := false
	defer func() {
		if !ended { // with an open transaction nobody else may have the connection
			_ = tx.Statement.ConnPool.(*sql.Conn).Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	if err := tx.Exec("START TRANSACTION").Error; err != nil {
		return err
	}
	if err := f(tx); err != nil {
		ended = tx.Exec("ROLLBACK").Error == nil
		return err
	}
	err = tx.Exec("COMMIT").Error
	ended = err == nil
	return err
}

// persist tries f until it does not lose a deadlock.
func (s *Store) persist(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == maxTries || !s.dialect.isDeadlock(err) {
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
