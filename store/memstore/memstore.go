// Package memstore is a store in memory: the contract of package store as a map
// and a lock. Tests of whatever needs a store use it, and package storetest
// compares every other store with it.
package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
	sagas  map[string]*entry
}

type entry struct {
	store.Record
	expires time.Time // when the retention ends; zero while unfinished
}

var _ store.Store = (*Store)(nil)

// New returns an empty store that keeps finished sagas for retention.
func New(retention time.Duration) *Store {
	return &Store{retention: retention, sagas: map[string]*entry{}}
}

// Reopen closes m and returns a new store with the sagas of m.
func (m *Store) Reopen() *Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return &Store{retention: m.retention, sagas: m.sagas}
}

// Close implements store.Store.
func (m *Store) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Apply implements store.Store.
func (m *Store) Apply(ctx context.Context, changes []store.Change) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := store.CheckBatch(changes)
	for i, c := range changes {
		if err := m.ready(ctx); err != nil {
			errs[i] = err
		}
		if errs[i] != nil {
			continue
		}
		switch c := c.(type) {
		case *store.Create:
			errs[i] = m.create(c)
		case *store.Transition:
			errs[i] = m.transition(c)
		}
	}
	return errs
}

func (m *Store) create(c *store.Create) error {
	if e := m.find(c.GID); e != nil {
		if bytes.Equal(e.Body, c.Body) {
			return fmt.Errorf("create %s: %w", c.GID, store.ErrDuplicate)
		}
		return fmt.Errorf("create %s: %w", c.GID, store.ErrExists)
	}
	m.sagas[c.GID] = &entry{Record: store.Record{
		GID:     c.GID,
		Status:  store.StatusSubmitted,
		Marks:   store.NewMarks(c.Steps),
		Epoch:   1,
		Owner:   c.Owner,
		Created: now(),
		Updated: now(),
		Due:     now().Add(max(c.Due, 0).Truncate(time.Millisecond)),
		Body:    bytes.Clone(c.Body),
	}}
	return nil
}

func (m *Store) transition(t *store.Transition) error {
	e := m.find(t.GID)
	switch {
	case e == nil:
		return fmt.Errorf("transition of %s: %w", t.GID, store.ErrNotFound)
	case e.Epoch != t.Epoch || e.Status != t.From:
		return fmt.Errorf("transition of %s: %w", t.GID, store.ErrConflict)
	}
	marks := e.Marks
	for _, s := range t.Marks {
		if int(s.Branch) >= len(marks) {
			return fmt.Errorf("transition of %s: %w: branch: %d of %d", t.GID, store.ErrInvalid, s.Branch, len(marks))
		}
		if was := marks.At(s.Branch); was != store.MarkPending && was != s.Mark {
			return fmt.Errorf("transition of %s: %w", t.GID, store.ErrConflict)
		}
		marks = marks.With(s.Branch, s.Mark)
	}

	e.Marks = marks
	if t.Note != "" {
		e.Note = t.Note
	}
	if t.Release {
		e.Owner = ""
	}
	if t.Due != 0 {
		e.Due = now().Add(max(t.Due, 0).Truncate(time.Millisecond))
	}
	if t.To != t.From {
		e.Status, e.Updated = t.To, now()
	}
	if t.To.Final() {
		e.Due, e.expires = time.Time{}, now().Add(m.retention)
	}
	return nil
}

// Get implements store.Store.
func (m *Store) Get(ctx context.Context, gid string) (store.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return store.Record{}, err
	}
	if err := store.CheckGID(gid); err != nil {
		return store.Record{}, err
	}
	e := m.find(gid)
	if e == nil {
		return store.Record{}, fmt.Errorf("get %s: %w", gid, store.ErrNotFound)
	}
	return e.record(), nil
}

// List implements store.Store. A cursor is the last gid of the previous page.
func (m *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return store.Page{}, err
	}
	q, err := q.Check()
	if err != nil {
		return store.Page{}, err
	}
	if q.Cursor != "" {
		if err := store.CheckGID(q.Cursor); err != nil {
			return store.Page{}, fmt.Errorf("cursor: %w", err)
		}
	}
	page, size := store.Page{Now: now()}, 0
	for _, e := range m.all(func(a, b *entry) int { return cmp.Compare(a.GID, b.GID) }) {
		if e.GID <= q.Cursor || !q.Matches(e.Record) {
			continue
		}
		if n := len(page.Records); n == q.Limit || size >= store.MaxPageBytes {
			page.Next = page.Records[n-1].GID
			break
		}
		size += len(e.Body) + len(e.Note)
		page.Records = append(page.Records, e.record())
	}
	return page, nil
}

// ClaimDue implements store.Store.
func (m *Store) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	if err := store.CheckClaim(owner, lease, limit); err != nil {
		return nil, err
	}
	var claimed []store.Record
	size := 0
	for _, e := range m.all(func(a, b *entry) int { return a.Due.Compare(b.Due) }) {
		if len(claimed) < limit && size < store.MaxPageBytes && e.due() {
			size += len(e.Body) + len(e.Note)
			claimed = append(claimed, e.claim(owner, lease))
		}
	}
	return claimed, nil
}

// ClaimOne claims the saga gid. It reports false if the saga is absent or not due.
func (m *Store) ClaimOne(gid, owner string, lease time.Duration) (store.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(gid)
	if e == nil || !e.due() {
		return store.Record{}, false
	}
	return e.claim(owner, lease), true
}

// Stats implements store.Store.
func (m *Store) Stats(ctx context.Context) (store.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var s store.Stats
	if err := m.ready(ctx); err != nil {
		return s, err
	}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Settings{Driver: "memory", Version: "1", Durability: store.D0}, m.ready(ctx)
}

func (m *Store) ready(ctx context.Context) error {
	if m.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// find returns the saga gid, or nil if it was never created or its retention has
// passed.
func (m *Store) find(gid string) *entry {
	e := m.sagas[gid]
	if e == nil || e.expired() {
		return nil
	}
	return e
}

// all returns the sagas whose retention has not passed, sorted by order.
func (m *Store) all(order func(a, b *entry) int) []*entry {
	var all []*entry
	for _, e := range m.sagas {
		if !e.expired() {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, order)
	return all
}

func (e *entry) due() bool { return !e.Status.Final() && !e.Due.After(now()) }

func (e *entry) expired() bool { return e.Status.Final() && !e.expires.After(now()) }

func (e *entry) claim(owner string, lease time.Duration) store.Record {
	e.Epoch++
	e.Owner = owner
	e.Due = now().Add(lease.Truncate(time.Millisecond))
	return e.record()
}

// record returns a copy that shares no memory with the store.
func (e *entry) record() store.Record {
	r := e.Record
	r.Body = bytes.Clone(e.Body)
	return r
}

// now is the store's clock, to the millisecond.
func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// Snapshot saves the contents of m; restore resets m to them. A crash or failover
// does the same to a store that acknowledges writes before they are durable.
func (m *Store) Snapshot() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := m.copies()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sagas = (&Store{sagas: saved}).copies()
	}
}

func (m *Store) copies() map[string]*entry {
	all := make(map[string]*entry, len(m.sagas))
	for gid, e := range m.sagas {
		c := *e
		all[gid] = &c
	}
	return all
}
