package store

import (
	"context"
	"time"
)

// Store keeps sagas. All methods may be called from many goroutines. A context
// that has ended keeps a call from starting; whether its end, other than by
// deadline, cuts short what is under way is the engine's affair.
type Store interface {
	Applier

	// Get reads one saga. It sees every change acknowledged before the call. Of
	// a gid that is not there the error is ErrNotFound, of one that cannot be
	// ErrInvalid. With a class of D3 or above, it returns nothing that a crash of
	// the server could undo.
	Get(ctx context.Context, gid string) (Record, error)

	// List reads a page of the sagas that match. Sagas that are neither
	// created, changed nor dropped while the pages are read appear at least
	// once, in no promised order; others may be missed. A record that cannot be
	// read is left out; Verify names it. With a class of D3 or above, it returns
	// nothing that a crash of the server could undo.
	List(ctx context.Context, query Query) (Page, error)

	// ClaimDue takes over up to limit unfinished sagas whose due time has
	// passed, released ones or not, longest overdue first: it raises their epoch
	// by one, names owner, and makes them due again after lease. No two calls get
	// the same epoch of a saga. It stops at MaxPageBytes. Otherwise, fewer than limit
	// do not mean that none is left when others claim at the same time.
	//
	// A due saga whose record cannot be read is not claimed. ClaimDue makes it due
	// again after Quarantine, and returns an error that wraps ErrUnreadable and names
	// its gid. Records returned together with an error are claimed.
	ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]Record, error)

	// Retention is how long the store keeps a finished saga; 0: not at all.
	Retention() time.Duration

	// Stats counts the unfinished sagas.
	Stats(ctx context.Context) (Stats, error)

	// Settings reads back from the engine what decides speed and safety.
	Settings(ctx context.Context) (Settings, error)

	// Close releases the store after the calls under way have ended. Later calls
	// answer ErrClosed. Closing twice is allowed.
	Close() error
}

// Applier is the one door through which sagas are written.
type Applier interface {
	// Apply makes each change durable or says why not: one error per change,
	// in their order. Changes do not depend on each other; one may fail and the
	// next succeed. No gid may appear twice.
	Apply(ctx context.Context, changes []Change) []error
}

// Query selects sagas for List.
type Query struct {
	Status        Status    // 0: any
	CreatedFrom   time.Time // inclusive; zero: no bound
	CreatedBefore time.Time // exclusive; zero: no bound
	Limit         int       // records per page, 1 to MaxListLimit; 0 means 100
	Cursor        string    // Page.Next of the page before; empty for the first
}

// MaxListLimit bounds the records of a page of List.
const MaxListLimit = 10_000

// MaxPageBytes bounds a page of List and an answer of ClaimDue: the record with
// which the bodies and notes together reach it is the last one. A store may count
// what else it keeps of a record. So there is always room for one, and a page is
// less than a record longer than this.
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
		return q, invalid("status: %v is none", q.Status)
	}
	return q, nil
}

// Matches reports whether List should return r.
func (q Query) Matches(r Record) bool {
	return (q.Status == 0 || q.Status == r.Status) &&
		(q.CreatedFrom.IsZero() || !r.Created.Before(q.CreatedFrom)) &&
		(q.CreatedBefore.IsZero() || r.Created.Before(q.CreatedBefore))
}

// Page is one answer of List. It may hold fewer records than the limit, even
// none, and still have a next page.
type Page struct {
	Records []Record
	Next    string    // empty on the last page
	Now     time.Time // the store's clock as the page was read; due times are by it
}

// Walk calls visit with every saga that matches, a page at a time, however many
// a page of the query holds. As with List, a saga may come more than once.
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

// Stats counts what has not ended.
type Stats struct {
	Unfinished int64
	Due        int64 // of those, how many anyone may claim now
	// OldestAge is how long ago the oldest unfinished saga was created. Stores
	// look among the sagas that are due first, at least the first 1,000, so
	// it is exact up to that many and a lower bound beyond.
	OldestAge time.Duration
}

// Wiper is implemented by stores that can delete all their sagas, for tests and
// benchmarks. Wipe deletes nothing that the store did not write.
type Wiper interface {
	Wipe(ctx context.Context) error
}

// Dropper is implemented by stores that can delete their sagas together with the
// tables and the schema that hold them. A dropped store can only be closed.
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
}

// ConnectionPool is implemented by stores whose calls share a pool of connections.
type ConnectionPool interface {
	// Connections returns the size limit of the pool, and how long calls have waited
	// for a connection in total since the store was opened.
	Connections() (limit int, waited time.Duration)
}
