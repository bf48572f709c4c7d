package sqlstore

import (
	"fmt"
	"log/slog"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// Config says which server to use and how.
type Config struct {
	// URL is mysql://user:password@host:port/database?tls=true, for MariaDB too,
	// or postgres://user:password@host:port/database?sslmode=verify-full.
	// On MySQL a database in the URL takes the place of Schema. Its options are tls
	// (true, false, skip-verify or preferred) and the files sslrootcert, sslcert and
	// sslkey, as on PostgreSQL. On PostgreSQL the database must exist, and the options
	// are those of libpq.
	URL string

	// Schema contains the tables: 1 to 32 of a-z 0-9 _, not a digit first. Open
	// creates it if it is missing. On MySQL it is a database.
	Schema string

	// MustExist makes Open fail with store.ErrAbsent if Schema contains no tables yet.
	MustExist bool

	Retention time.Duration // how long finished sagas are kept; 0: not at all
	Timeout   time.Duration // for connecting, and for a call; at least 1s
	Conns     int           // connection limit, at least 2

	// Lease is the coordinators' lease. The server ends a session whose client is
	// silent, and releases its locks, after a third of the lease, but at least 2s. On
	// MySQL this is rounded down to seconds.
	Lease time.Duration

	// Log receives errors of background work; nil discards them.
	Log *slog.Logger
}

// DefaultConfig uses a schema named sagabench. The caller sets URL.
func DefaultConfig() Config {
	return Config{
		Schema:    "sagabench",
		Retention: time.Hour,
		Timeout:   10 * time.Second,
		Conns:     16,
		Lease:     10 * time.Second,
	}
}

func (c Config) check() (Config, error) {
	switch {
	case !sqlconn.ValidSchema.MatchString(c.Schema):
		return c, fmt.Errorf("%w: schema: %q, want 1 to 32 of a-z 0-9 _, no digit first", store.ErrInvalid, c.Schema)
	case c.Retention < 0:
		return c, fmt.Errorf("%w: retention: %v, at least 0", store.ErrInvalid, c.Retention)
	case c.Timeout < time.Second:
		return c, fmt.Errorf("%w: timeout: %v, at least 1s", store.ErrInvalid, c.Timeout)
	case c.Lease < time.Millisecond:
		return c, fmt.Errorf("%w: lease: %v, at least 1ms", store.ErrInvalid, c.Lease)
	case c.Conns < 2:
		return c, fmt.Errorf("%w: conns: %d, at least 2", store.ErrInvalid, c.Conns)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// lockWait is how long a statement waits for a lock before its transaction is
// rolled back: longer than a commit takes on a healthy server, and the minimum of
// InnoDB.
const lockWait = time.Second

// silence is how long the server waits for a silent client in a transaction, or while
// it sends an answer.
func (c Config) silence() time.Duration { return max(c.Lease/3, 2*time.Second) }
