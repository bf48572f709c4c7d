package sqlstore

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"sagabench/store"
)

// Config says which server to use and how.
type Config struct {
	// URL is mysql://user:password@host:port/database?tls=true, for MariaDB too,
	// or postgres://user:password@host:port/database?sslmode=verify-full. On
	// MySQL the database may be left out and is else used in place of Schema;
	// tls may be true, false, skip-verify or preferred, and sslrootcert, sslcert
	// and sslkey are files as on PostgreSQL. There the database has to exist, and
	// the options are those of libpq.
	URL string

	// Schema is where the tables are, 1 to 32 of a-z 0-9 _, not beginning with a
	// digit; it is made if it is missing. On MySQL it is a database.
	Schema string

	// MustExist has Open fail with store.ErrAbsent where Schema holds no tables yet.
	MustExist bool

	Retention time.Duration // how long finished sagas are kept; 0: not at all
	Timeout   time.Duration // for connecting, and for a call; at least 1s
	Conns     int           // connections at most

	// Lease is the coordinators'. The server ends the session of a host that falls
	// silent, and frees what it has locked, after a third of it, or 2s if that is
	// longer. On MySQL these are full seconds.
	Lease time.Duration

	// Log takes what goes wrong in the background; nil drops it.
	Log *slog.Logger
}

// DefaultConfig is a schema named sagabench. URL is left to be set.
func DefaultConfig() Config {
	return Config{
		Schema:    "sagabench",
		Retention: time.Hour,
		Timeout:   10 * time.Second,
		Conns:     16,
		Lease:     10 * time.Second,
	}
}

var validSchema = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

func (c Config) check() (Config, error) {
	switch {
	case !validSchema.MatchString(c.Schema):
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
// rolled back: longer than a healthy server takes for a commit, and the least
// that InnoDB knows.
const lockWait = time.Second

// sessionBound is how long the server waits for a client that is silent: in a
// transaction, or as it takes an answer.
func (c Config) sessionBound() time.Duration { return max(c.Lease/3, 2*time.Second) }
