package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// Limits of one transaction. MariaDB makes a temporary table of a list of 1000
// or more. By default it accepts statements of up to 16 MiB; escaping may double the
// length of a body.
const (
	maxChunkChanges = 500
	maxChunkBytes   = 5 << 20
)

// maxTries bounds how often persist tries a transaction that had no effect.
const maxTries = 20

// Apply implements store.Applier.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs := store.CheckBatch(changes)
	err := s.call(ctx, s.cfg.Timeout, "apply", func(ctx context.Context) error {
		failed := make(map[string]error)
		for _, c := range chunks(changes, errs, failed) {
			s.write(ctx, c)
		}
		for i, change := range changes {
			if errs[i] == nil && len(failed) > 0 {
				errs[i] = failed[change.Gid()]
			}
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	return errs
}

// noWaitFor is how long the store waits for no lock after it last met a locked row:
// longer than the pause after which a coordinator tries a change again.
const noWaitFor = 10 * time.Second

// write applies a chunk. If another transaction keeps a row locked, only the changes
// of such rows fail.
func (s *Store) write(ctx context.Context, c chunk) {
	if time.Now().UnixNano() > s.noWaitTill.Load() {
		rest, err := s.applyChunk(ctx, c, false)
		if !s.dialect.isLocked(err) {
			s.fail(ctx, rest, err)
			return
		}
		c = rest
	}
	s.writeUnlocked(ctx, c)
}

// writeUnlocked applies a chunk without waiting for locks. When it meets one, it
// halves the chunk, until only the changes of locked rows are left. These it fails.
func (s *Store) writeUnlocked(ctx context.Context, c chunk) {
	c.fail(nil) // drops the errors of a transaction that had no effect
	rest, err := s.applyChunk(ctx, c, true)
	switch {
	case !s.dialect.isLocked(err):
		s.fail(ctx, rest, err)
	case rest.size() == 1:
		s.noWaitTill.Store(time.Now().Add(noWaitFor).UnixNano())
		s.fail(ctx, rest, fmt.Errorf("another transaction has locked it: %w", err))
	default:
		a, b := rest.halves()
		s.writeUnlocked(ctx, a)
		s.writeUnlocked(ctx, b)
	}
}

// fail fails the changes that err, unless it is nil, has kept from being written.
func (s *Store) fail(ctx context.Context, c chunk, err error) {
	if err != nil {
		c.fail(s.failure(ctx, "apply", err))
	}
}

// chunk is what one transaction writes, in the order of the gids: two transactions
// that lock rows in the same order do not deadlock.
type chunk struct {
	creates     []*store.Create
	transitions []*store.Transition
	failed      map[string]error // errors of changes by gid; all chunks of an Apply share it
}

// chunks sorts the changes without an error, and splits them.
func chunks(changes []store.Change, errs []error, failed map[string]error) (all []chunk) {
	valid := make([]store.Change, 0, len(changes))
	for i, c := range changes {
		if errs[i] == nil {
			valid = append(valid, c)
		}
	}
	slices.SortFunc(valid, func(a, b store.Change) int { return cmp.Compare(a.Gid(), b.Gid()) })
	count, bytes := maxChunkChanges, 0
	for _, change := range valid {
		size := sizeOf(change)
		if count == maxChunkChanges || bytes+size > maxChunkBytes {
			all = append(all, chunk{failed: failed})
			count, bytes = 0, 0
		}
		count++
		bytes += size
		switch c := &all[len(all)-1]; change := change.(type) {
		case *store.Create:
			c.creates = append(c.creates, change)
		case *store.Transition:
			c.transitions = append(c.transitions, change)
		default:
			panic(fmt.Sprintf("sql: a change of type %T: package store has two", change))
		}
	}
	return all
}

// sizeOf returns about how long a change is in a statement, before escaping.
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

func (c chunk) size() int { return len(c.creates) + len(c.transitions) }

func (c chunk) gids() []string { return append(gidsOf(c.creates), gidsOf(c.transitions)...) }

// halves separates creates from transitions; a chunk of one kind it cuts in two.
func (c chunk) halves() (a, b chunk) {
	i, j := len(c.creates), 0
	if i == 0 || len(c.transitions) == 0 {
		i, j = i/2, len(c.transitions)/2
	}
	return chunk{c.creates[:i], c.transitions[:j], c.failed}, chunk{c.creates[i:], c.transitions[j:], c.failed}
}

// without returns the changes whose gids are not in gids.
func (c chunk) without(gids []string) chunk {
	return chunk{without(c.creates, gids), without(c.transitions, gids), c.failed}
}

// fail sets the error of all changes.
func (c chunk) fail(err error) {
	for _, gid := range c.gids() {
		c.failed[gid] = err
	}
}

// without returns the changes whose gids are not in gids.
func without[C store.Change](changes []C, gids []string) (rest []C) {
	out := make(map[string]bool, len(gids))
	for _, gid := range gids {
		out[gid] = true
	}
	for _, c := range changes {
		if !out[c.Gid()] {
			rest = append(rest, c)
		}
	}
	return rest
}

func gidsOf[C store.Change](changes []C) []string {
	gids := make([]string, len(changes))
	for i, c := range changes {
		gids[i] = c.Gid()
	}
	return gids
}

// applyChunk writes all changes that do not conflict, in one batch, and applies or
// refuses the rest one by one, in a transaction. With an error it returns what was not
// written. With noWait a locked row is an error.
func (s *Store) applyChunk(ctx context.Context, c chunk, noWait bool) (rest chunk, err error) {
	err = s.persist(ctx, func() (err error) {
		rest, err = s.dialect.apply(ctx, s.db, c, s.retention(), noWait)
		return err
	})
	if err != nil {
		return c, err
	}
	if rest.size() == 0 {
		return rest, nil
	}
	err = s.transact(ctx, func(tx sqlconn.Session) error {
		rest.fail(nil) // of an attempt that had no effect
		if statement := s.dialect.noWait(rest); noWait && statement != "" {
			if err := s.exec(ctx, tx, statement); err != nil {
				return err
			}
		}
		if err := s.create(ctx, tx, rest); err != nil {
			return err
		}
		return s.transition(ctx, tx, rest)
	})
	if err != nil {
		return rest, err
	}
	// A refusal shows the caller what another client may have written.
	return rest, s.awaitFlush(ctx)
}

// retention is the retention in milliseconds.
func (s *Store) retention() int64 { return store.Millis(s.cfg.Retention) }

// transact runs f in a transaction, again while that has no effect. So f may run more
// than once, and its results count only if transact returns nil.
func (s *Store) transact(ctx context.Context, f func(tx sqlconn.Session) error) error {
	return s.persist(ctx, func() error { return sqlconn.InTransaction(ctx, s.db, f) })
}

// persist runs f until it does not lose a deadlock.
func (s *Store) persist(ctx context.Context, f func() error) error {
	return sqlconn.Persist(ctx, maxTries, s.dialect.isDeadlock, f)
}
