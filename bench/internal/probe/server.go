package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sagabench/store/open"
)

// Server says which store to measure.
type Server struct {
	Driver string // open.Redis, open.MySQL or open.Postgres; others have no server, and are not measured
	URL    string
	Here   bool // it runs on this machine

	// PID is its process, of several the one that started the others; 0: whichever
	// listens on the port, if the server is here. A Redis says itself what it uses.
	PID int

	// Schema is where an SQL store has its tables, whose growth is measured.
	Schema string

	// Scripts are the sources of the scripts that run on a Redis, which counts the
	// commands inside a script like those that clients send; what the scripts call
	// is how the two are told apart.
	Scripts []string
}

// storeServer is a store's server that is asked what it costs, at both ends of the
// interval.
type storeServer interface {
	begin(ctx context.Context) error
	end(ctx context.Context) error

	// connections are how many are open now, the probe's own among them, and how many
	// the server allows.
	connections(ctx context.Context) (open, most int, err error)

	// used is the difference between the two.
	used() storeUse

	// cpu is what the server used since it began, in seconds, if that is known. It
	// is cheap to ask for.
	cpu(ctx context.Context) (*float64, error)

	close() error
}

// storeUse is what a server used; see Usage. What is nil was not to be had, and why
// is in failures, or was an error of begin or end.
type storeUse struct {
	cpu                              *float64
	bytesIn, bytesOut, memory, calls *int64
	fsyncs                           *float64
	lockTime                         *float64 // seconds
	oneCore                          bool
	failures                         []error
}

func (u *storeUse) fail(what string, err error) {
	u.failures = append(u.failures, fmt.Errorf("the store's %s: %w", what, err))
}

// grown is by how much a counter went up. One that went down is not the one that
// it was.
func (u *storeUse) grown(what string, before, after int64) *int64 {
	if after < before {
		u.fail(what, fmt.Errorf("its counter went back from %d to %d", before, after))
		return nil
	}
	n := after - before
	return &n
}

var errDeleted = errors.New("sagas were dropped meanwhile, so what is left says nothing about one")

func newStoreServer(ctx context.Context, s Server, timeout time.Duration) (server storeServer, err error) {
	switch s.Driver {
	case open.Redis:
		server, err = newRedisServer(ctx, s, timeout)
	case open.MySQL:
		server, err = newMySQLServer(ctx, s, timeout)
	case open.Postgres:
		server, err = newPostgresServer(ctx, s, timeout)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", s.Driver, err)
	}
	return server, nil
}
