// Package memstore is a store in memory: the contract of package store as a map
// and a lock. Tests of whatever needs a store use it, and package storetest
// compares every other store with it.
package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sagabench/store"
)

// Store implements [store.Store] with durability class D0. Its clock is
// [time.Now], so it works inside a testing/synctest bubble.
type Store struct {
	retention time.Duration

	mu     sync.Mutex
	closed bool
	sagas  map[string]entry
}

type entry struct {
	store.Record
	expires time.Time // when the retention ends; zero while unfinished
}

var _ store.Store = (*Store)(nil)

// New returns an empty store that keeps finished sagas for retention.
func New(retention time.Duration) *Store {
	return &Store{retention: retention, sagas: map[string]entry{}}
}

// Reopen closes m and returns a new store with the sagas of m.
func (m *Store) Reopen() *Store {
	_ = m.Close()
	return &Store{retention: m.retention, sagas: m.sagas}
}

// Close implements store.Store.
func (m *Store) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// begin starts a call. Unless it returns an error, m.mu is locked and the caller must
// unlock it.
func (m *Store) begin(ctx context.Context) error {
	m.mu.Lock()
	err := ctx.Err()
	if m.closed {
		err = store.ErrClosed
	}
	if err != nil {
		m.mu.Unlock()
	}
	return err
}

// Apply implements store.Store.
func (m *Store) Apply(ctx context.Context, changes []store.Change) []error {
	if err := m.begin(ctx); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	defer m.mu.Unlock()
	errs := store.CheckBatch(changes)
	for i, c := range changes {
		if errs[i] == nil {
			errs[i] = m.apply(c)
		}
	}
	return errs
}

func (m *Store) apply(c store.Change) error {
	e, found := m.find(c.Gid())
	switch c := c.(type) {
	case *store.Create:
		switch {
		case found && bytes.Equal(e.Body, c.Body):
			return fmt.Errorf("create %s: %w", c.GID, store.ErrDuplicate)
		case found:
			return fmt.Errorf("create %s: %w", c.GID, store.ErrExists)
		}
		e = entry{Record: store.Record{
			GID:     c.GID,
			Status:  store.StatusSubmitted,
			Marks:   store.NewMarks(c.Steps),
			Epoch:   1,
			Owner:   c.Owner,
			Created: now(),
			Updated: now(),
			Due:     after(c.Due),
			Body:    bytes.Clone(c.Body),
		}}
	case *store.Transition:
		if !found {
			return fmt.Errorf("transition of %s: %w", c.GID, store.ErrNotFound)
		}
		if err := c.Apply(&e.Record, now()); err != nil {
			return fmt.Errorf("transition of %s: %w", c.GID, err)
		}
		if c.To.Final() {
			e.expires = now().Add(m.retention)
		}
	}
	m.sagas[e.GID] = e
	return nil
}

// Get implements store.Store.
func (m *Store) Get(ctx context.Context, gid string) (store.Record, error) {
	if err := store.CheckGID(gid); err != nil {
		return store.Record{}, err
	}
	if err := m.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer m.mu.Unlock()
	e, found := m.find(gid)
	if !found {
		return store.Record{}, fmt.Errorf("get %s: %w", gid, store.ErrNotFound)
	}
	return e.copied(), nil
}

// List implements store.Store. A cursor is the last gid of the previous page.
func (m *Store) List(ctx context.Context, q store.Query) (page store.Page, err error) {
	if q, err = q.Check(); err != nil {
		return page, err
	}
	if q.Cursor != "" {
		if err := store.CheckGID(q.Cursor); err != nil {
			return page, fmt.Errorf("cursor: %w", err)
		}
	}
	if err := m.begin(ctx); err != nil {
		return page, err
	}
	defer m.mu.Unlock()
	page.Now = now()
	size := 0
	for _, e := range m.all(func(a, b entry) int { return cmp.Compare(a.GID, b.GID) }) {
		if e.GID <= q.Cursor || !q.Matches(e.Record) {
			continue
		}
		if n := len(page.Records); n == q.Limit || size >= store.MaxPageBytes {
			page.Next = page.Records[n-1].GID
			break
		}
		size += len(e.Body) + len(e.Note)
		page.Records = append(page.Records, e.copied())
	}
	return page, nil
}

// ClaimDue implements store.Store.
func (m *Store) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) (claimed []store.Record, err error) {
	if err := store.CheckClaim(owner, lease, limit); err != nil {
		return nil, err
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	size := 0
	for _, e := range m.all(func(a, b entry) int { return a.Due.Compare(b.Due) }) {
		if len(claimed) < limit && size < store.MaxPageBytes && e.due() {
			size += len(e.Body) + len(e.Note)
			claimed = append(claimed, m.claim(e, owner, lease))
		}
	}
	return claimed, nil
}

// ClaimOne claims the saga gid. It reports false if the saga is absent or not due.
func (m *Store) ClaimOne(gid, owner string, lease time.Duration) (store.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, found := m.find(gid)
	if !found || !e.due() {
		return store.Record{}, false
	}
	return m.claim(e, owner, lease), true
}

func (m *Store) claim(e entry, owner string, lease time.Duration) store.Record {
	e.Epoch++
	e.Owner = owner
	e.Due = after(lease)
	m.sagas[e.GID] = e
	return e.copied()
}

// Stats implements store.Store.
func (m *Store) Stats(ctx context.Context) (s store.Stats, err error) {
	if err := m.begin(ctx); err != nil {
		return s, err
	}
	defer m.mu.Unlock()
	for _, e := range m.sagas {
		if e.Status.Final() {
			continue
		}
		s.Unfinished++
		if e.due() {
			s.Due++
		}
		s.OldestAge = max(s.OldestAge, now().Sub(e.Created))
	}
	return s, nil
}

// Retention implements store.Store.
func (m *Store) Retention() time.Duration { return m.retention }

// Settings implements store.Store.
func (m *Store) Settings(ctx context.Context) (store.Settings, error) {
	if err := m.begin(ctx); err != nil {
		return store.Settings{}, err
	}
	defer m.mu.Unlock()
	return store.Settings{Driver: "memory", Version: "1", Durability: store.D0}, nil
}

// Snapshot saves the contents of m; restore resets m to them. A crash or failover
// does the same to a store that acknowledges writes before they are durable.
func (m *Store) Snapshot() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := maps.Clone(m.sagas)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sagas = maps.Clone(saved)
	}
}

// find returns the saga gid, unless it was never created or its retention has passed.
func (m *Store) find(gid string) (e entry, found bool) {
	e, found = m.sagas[gid]
	return e, found && !e.expired()
}

// all returns the sagas whose retention has not passed, sorted by order.
func (m *Store) all(order func(a, b entry) int) []entry {
	all := slices.Collect(maps.Values(m.sagas))
	all = slices.DeleteFunc(all, entry.expired)
	slices.SortFunc(all, order)
	return all
}

func (e entry) due() bool { return !e.Status.Final() && !e.Due.After(now()) }

func (e entry) expired() bool { return e.Status.Final() && !e.expires.After(now()) }

// copied returns a record that shares no memory with the store.
func (e entry) copied() store.Record {
	e.Body = bytes.Clone(e.Body)
	return e.Record
}

// now is the store's clock, to the millisecond.
func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// after returns the store's time d from now.
func after(d time.Duration) time.Time {
	return now().Add(time.Duration(store.Millis(d)) * time.Millisecond)
}
