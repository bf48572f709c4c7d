package storetest

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

// Model is the contract of package store, written to be read: a map and a lock.
// It keeps nothing beyond the process, so its class is D0. Its clock is
// [time.Now], so it can be used inside a testing/synctest bubble.
type Model struct {
	retention time.Duration

	mu     sync.Mutex
	closed bool
	sagas  map[string]*entry
}

type entry struct {
	store.Record
	gone time.Time // when the retention ends; zero while unfinished
}

var _ store.Store = (*Model)(nil)

// NewModel makes an empty model that keeps a finished saga for so long.
func NewModel(retention time.Duration) *Model {
	return &Model{retention: retention, sagas: map[string]*entry{}}
}

// Reopen closes m and gives a model of what it held.
func (m *Model) Reopen() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return &Model{retention: m.retention, sagas: m.sagas}
}

// Close implements store.Store.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Apply implements store.Store.
func (m *Model) Apply(ctx context.Context, changes []store.Change) []error {
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

func (m *Model) create(c *store.Create) error {
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

func (m *Model) transition(t *store.Transition) error {
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
		e.Due, e.gone = time.Time{}, now().Add(m.retention)
	}
	return nil
}

// Get implements store.Store.
func (m *Model) Get(ctx context.Context, gid string) (store.Record, error) {
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

// List implements store.Store. A cursor is the last gid of the page before.
func (m *Model) List(ctx context.Context, q store.Query) (store.Page, error) {
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
func (m *Model) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
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
			e.claim(owner, lease)
			size += len(e.Body) + len(e.Note)
			claimed = append(claimed, e.record())
		}
	}
	return claimed, nil
}

// Stats implements store.Store.
func (m *Model) Stats(ctx context.Context) (store.Stats, error) {
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
func (m *Model) Retention() time.Duration { return m.retention }

// Settings implements store.Store.
func (m *Model) Settings(ctx context.Context) (store.Settings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Settings{Driver: "model", Version: "1", Durability: store.D0}, m.ready(ctx)
}

func (m *Model) ready(ctx context.Context) error {
	if m.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// find is the saga of this gid, or nil if it never was or its retention has
// passed.
func (m *Model) find(gid string) *entry {
	e := m.sagas[gid]
	if e == nil || e.expired() {
		return nil
	}
	return e
}

// all is every saga that is there, in order.
func (m *Model) all(order func(a, b *entry) int) []*entry {
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

func (e *entry) expired() bool { return e.Status.Final() && !e.gone.After(now()) }

func (e *entry) claim(owner string, lease time.Duration) {
	e.Epoch++
	e.Owner = owner
	e.Due = now().Add(lease.Truncate(time.Millisecond))
}

// record is a copy that shares nothing with the model.
func (e *entry) record() store.Record {
	r := e.Record
	r.Body = bytes.Clone(e.Body)
	return r
}

// now is the model's clock, to the millisecond.
func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// Snapshot remembers all that m holds. Restore takes m back to it, as a crash or
// a failover does to a store that acknowledges what it has not made durable.
func (m *Model) Snapshot() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.copies()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sagas = (&Model{sagas: held}).copies()
	}
}

func (m *Model) copies() map[string]*entry {
	all := make(map[string]*entry, len(m.sagas))
	for gid, e := range m.sagas {
		c := *e
		all[gid] = &c
	}
	return all
}
