// Package open turns the name of a store, as a person types it, into the store.
// It is the one package that knows all engines.
package open

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"sagabench/store"
	"sagabench/store/pebblestore"
	"sagabench/store/redisstore"
	"sagabench/store/sqlstore"
)

// Config holds what each engine needs; the name decides which is used.
type Config struct {
	Redis    redisstore.Config
	Pebble   pebblestore.Config
	MySQL    sqlstore.Config
	Postgres sqlstore.Config
}

// Names of the engines.
const (
	Pebble   = "pebble"
	Redis    = "redis"
	MySQL    = "mysql" // and MariaDB
	Postgres = "postgres"
)

// Names says what Parse understands.
const Names = "pebble, pebble:DIR, redis, mysql, postgres, or the URL of a server: redis://HOST:PORT, rediss://…, mysql://USER@HOST:PORT, postgres://USER@HOST:PORT/DATABASE"

// Target is a store that can be opened.
type Target struct {
	Driver string // one of the names above
	Config Config // with what the name said put in
}

// Parse understands the name of an engine, pebble:DIR, and the URL of a server.
// What the name leaves open is taken from the configuration. The error wraps
// store.ErrInvalid.
func Parse(name string, cfg Config) (Target, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	t := Target{Driver: scheme, Config: cfg}
	switch scheme {
	case Pebble:
		if rest != "" {
			t.Config.Pebble.Dir = rest
		}
		return t, nil
	case Redis, MySQL, Postgres:
	case "rediss":
		t.Driver = Redis
	case "postgresql":
		t.Driver = Postgres
	default:
		// Nothing after the colon is said again: it may hold a password.
		return Target{}, fmt.Errorf("%w: store: %q is none: want %s", store.ErrInvalid, scheme, Names)
	}
	if name != t.Driver {
		t.SetURL(name)
	}
	return t, nil
}

// url is where the URL of the target's server is; nil for an embedded engine.
func (t *Target) url() *string {
	switch t.Driver {
	case Redis:
		return &t.Config.Redis.URL
	case MySQL:
		return &t.Config.MySQL.URL
	case Postgres:
		return &t.Config.Postgres.URL
	default:
		return nil
	}
}

// URL is that of the store's server, with its password; empty for an embedded
// one.
func (t Target) URL() string {
	if u := t.url(); u != nil {
		return *u
	}
	return ""
}

// SetURL has the store use another server. An embedded one has none to change.
func (t *Target) SetURL(url string) {
	if u := t.url(); u != nil {
		*u = url
	}
}

// MustExist has Open fail with store.ErrAbsent, and create nothing, where there is
// no store yet.
func (t *Target) MustExist() {
	t.Config.Redis.MustExist, t.Config.Pebble.MustExist = true, true
	t.Config.MySQL.MustExist, t.Config.Postgres.MustExist = true, true
}

// Retention is how long the store keeps finished sagas.
func (t Target) Retention() time.Duration {
	switch t.Driver {
	case Redis:
		return t.Config.Redis.Retention
	case MySQL:
		return t.Config.MySQL.Retention
	case Postgres:
		return t.Config.Postgres.Retention
	default:
		return t.Config.Pebble.Retention
	}
}

// Embedded reports whether the store belongs to the process that opens it.
func (t Target) Embedded() bool { return t.url() == nil }

// SetLog gives a log to the engines that have something to say in the background.
func (t *Target) SetLog(log *slog.Logger) {
	t.Config.Pebble.Log, t.Config.MySQL.Log, t.Config.Postgres.Log = log, log, log
}

// Schema is where the tables are on an SQL server; empty elsewhere. A database
// that is named in a URL for MySQL takes its place.
func (t Target) Schema() string {
	switch t.Driver {
	case MySQL:
		if u, err := url.Parse(t.Config.MySQL.URL); err == nil && strings.Trim(u.Path, "/") != "" {
			return strings.Trim(u.Path, "/")
		}
		return t.Config.MySQL.Schema
	case Postgres:
		return t.Config.Postgres.Schema
	default:
		return ""
	}
}

// Fresh is the same server with a place for sagas that nobody else has: a key
// prefix b… on Redis, a schema sagabench_… on the others. It is made when the
// store is opened. An embedded store stays where it is.
func (t Target) Fresh() Target {
	schema := "sagabench_" + strings.ToLower(rand.Text()[:8])
	switch t.Driver {
	case Redis:
		t.Config.Redis.Prefix = "b" + rand.Text()[:7] // short: it is in every key
	case MySQL:
		t.Config.MySQL.URL = withoutDatabase(t.Config.MySQL.URL)
		t.Config.MySQL.Schema = schema
	case Postgres:
		t.Config.Postgres.Schema = schema
	}
	return t
}

// withoutDatabase takes the database off a URL for MySQL, where it is used in
// place of the schema. What is no URL is for Open to refuse.
func withoutDatabase(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	u.Path, u.RawPath = "/", ""
	return u.String()
}

// Open opens the store. Its error is one line, without a password.
func (t Target) Open(ctx context.Context) (store.Store, error) {
	if !t.Embedded() && t.URL() == "" {
		return nil, fmt.Errorf("%w: %s: which server? Set %[2]s.url, or name it by its URL", store.ErrInvalid, t.Driver)
	}
	if u, err := url.Parse(t.URL()); err == nil && unescaped(u) {
		return nil, fmt.Errorf("%w: %s: url: an @ behind the host: write what is special in a user or password as %%XX", store.ErrInvalid, t.Driver)
	}
	switch t.Driver {
	case Redis:
		return redisstore.Open(ctx, t.Config.Redis)
	case MySQL:
		return openSQL(ctx, t.Config.MySQL)
	case Postgres:
		return openSQL(ctx, t.Config.Postgres)
	default:
		return pebblestore.Open(ctx, t.Config.Pebble)
	}
}
