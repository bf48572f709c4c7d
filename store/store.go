package store

import (
	"context"
	"time"
)

// Store stores sagas. All methods may be called by many goroutines at once. A call with
// a context that has ended does nothing. A deadline ends a call under way; whether a
// cancellation does depends on the store.
type Store interface {
	Applier

	// Get returns a saga, with every change acknowledged before the call. It returns
	// ErrNotFound if the saga is absent and ErrInvalid if the gid is malformed. With
	// class D3 or above, it returns nothing that a crash of the server could undo.
	Get(ctx context.Context, gid string) (Record, error)

	// List returns a page of the sagas that match, in no particular order. A saga that
	// is not created, changed or deleted while the pages are read appears at least
	// once. Others may be missed. List omits records that cannot be read; Verify names
	// them. With class D3 or above, it returns nothing that a crash of the server could
	// undo.
	List(ctx context.Context, query Query) (Page, error)

	// ClaimDue claims up to limit unfinished sagas whose due time has passed, longest
	// overdue first: it raises their epoch by one, sets the owner, and makes them due
	// again after lease. No two calls get the same epoch of a saga. It stops at
	// MaxPageBytes. If others claim at the same time, it may return fewer sagas than
	// limit although more are due.
	//
	// A due saga whose record cannot be read is not claimed. ClaimDue makes it due
	// again after Quarantine, and returns an error that wraps ErrUnreadable and names
	// its gid. Records returned together with an error are claimed.
	ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]Record, error)

	// Retention returns how long the store keeps a finished saga; 0: not at all.
	Retention() time.Duration

	// Stats counts the unfinished sagas. Stats returned with ErrPartial are usable.
	Stats(ctx context.Context) (Stats, error)

	// Settings reads the engine's settings that decide speed and safety.
	Settings(ctx context.Context) (Settings, error)

	// Close waits for the calls under way and closes the store. Later calls return
	// ErrClosed, except Close.
	Close() error
}

// Applier writes changes. Nothing else but ClaimDue changes sagas.
type Applier interface {
	// Apply makes each change durable. It returns one error per change, in their
	// order. Each change succeeds or fails by itself. No gid may appear twice.
	Apply(ctx context.Context, changes []Change) []error
}

// Query selects sagas for List.
type Query struct {
	Status        Status    // 0: every status
	CreatedFrom   time.Time // inclusive; zero: no bound
	CreatedBefore time.Time // exclusive; zero: no bound
	Limit         int       // records per page, 1 to MaxListLimit; 0 means 100
	Cursor        string    // Page.Next of the page before; empty for the first
}

// MaxListLimit limits the records of a page of List.
const MaxListLimit = 10_000

// MaxPageBytes limits a page of List and a reply of ClaimDue by the bodies and notes of
// its records. The record that reaches the limit is the last one, so a page always has
// room for one. A store may count other bytes of its records too.
const MaxPageBytes = 8 << 20

// Quarantine is how long ClaimDue skips a saga whose record cannot be read.
// By then it may have been repaired, or a version that can read it may be running.
const Quarantine = 10 * time.Minute

const defaultListLimit = 100

// Check validates the query and fills in its defaults.
func (q Query) Check() (Query, error) {
	if q.Limit == 0 {
		q.Limit = defaultListLimit
	}
	switch {
	case q.Limit < 0 || q.Limit > MaxListLimit:
		return q, invalid("limit: %d, must be 1 to %d", q.Limit, MaxListLimit)
	case q.Status != 0 && !q.Status.Valid():
		return q, invalid("status: %v is unknown", q.Status)
	}
	return q, nil
}

// Matches reports whether List should return r.
func (q Query) Matches(r Record) bool {
	return (q.Status == 0 || q.Status == r.Status) &&
		(q.CreatedFrom.IsZero() || !r.Created.Before(q.CreatedFrom)) &&
		(q.CreatedBefore.IsZero() || r.Created.Before(q.CreatedBefore))
}

// Page is a reply of List. It may hold fewer records than the limit, even none, and
// have a next page.
type Page struct {
	Records []Record
	Next    string    // empty on the last page
	Now     time.Time // the store's time when it read the page
}

// Walk calls visit with every saga that matches, on all pages. As with List, a saga may
// appear more than once.
func Walk(ctx context.Context, s Store, query Query, visit func(Record)) error {
	for {
		page, err := s.List(ctx, query)
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			visit(r)
		}
		if query.Cursor = page.Next; page.Next == "" {
			return nil
		}
	}
}

// Stats counts the unfinished sagas.
type Stats struct {
	Unfinished int64
	Due        int64 // how many of them may be claimed now
	// OldestAge is the age of the oldest unfinished saga. Stores read at least the
	// 1,000 sagas that are due first. With more unfinished sagas it is a lower bound.
	OldestAge time.Duration
}

// Partitioned is implemented by stores whose sagas are spread over several servers. A
// batch with changes of one partition only waits for no other server.
type Partitioned interface {
	Partitions() int            // at least 1
	PartitionOf(gid string) int // 0 to Partitions()-1, always the same
}

// Dropper is implemented by stores that can delete their sagas together with the
// tables and the schema that hold them. They delete nothing that they did not write. A
// dropped store can only be closed.
type Dropper interface {
	Drop(ctx context.Context) error
}

// Verifier is implemented by stores that can check their own bookkeeping: every
// record can be read, every unfinished saga is in the due index and has no expiry,
// and the index holds nothing else. Verify returns one line per fault. It reads the
// whole store, which nobody may change meanwhile.
type Verifier interface {
	Verify(ctx context.Context) (findings []string, err error)
}

// CounterSource is implemented by stores that count their work since they were
// opened.
type CounterSource interface {
	Counters() Counters
}

// Counters are running totals. A negative value is unknown.
type Counters struct {
	RoundTrips int64 // waits for a server's answer, or commits of an embedded engine
	Fsyncs     int64
	Written    int64 // bytes, in the pages of 4 KiB that the disk gets
	Debt       int64 // bytes of background work that was put off: it goes down, too
}

// ConnectionPool is implemented by stores whose calls share a pool of connections.
type ConnectionPool interface {
	// Connections returns the size limit of the pool, and how long calls have waited
	// for a connection in total since the store was opened.
	Connections() (limit int, waited time.Duration)
}
