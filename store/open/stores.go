package open

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"sagabench/internal/secret"
	"sagabench/store"
	"sagabench/store/pebblestore"
	"sagabench/store/redisstore"
	"sagabench/store/sqlstore"
)

// Names of the stores.
const (
	Pebble   = "pebble"
	Redis    = "redis"
	MySQL    = "mysql" // and MariaDB
	Postgres = "postgres"
)

// descriptor is what this package knows of one store.
type descriptor struct {
	name     string
	schemes  []string      // of the URLs of its servers; none: the store is embedded
	example  string        // URLs as the list of names shows them
	location []string      // keys of the settings that Location returns
	setFresh func(*Config) // see Target.Fresh; nil: leaves it as it is
	open     func(context.Context, Config) (store.Store, error)
}

// stores describes every store. Adding one takes an entry here, a field of Config and
// its keys. The key of a server's URL is the name and ".url".
var stores = []descriptor{
	{
		name:     Pebble,
		location: []string{"pebble.dir", "pebble.sync"},
		open: func(ctx context.Context, c Config) (store.Store, error) {
			p := c.Pebble
			p.Retention, p.MustExist, p.Log = c.Retention, c.MustExist, c.Log
			return pebblestore.Open(ctx, p)
		},
	},
	{
		name:     Redis,
		schemes:  []string{"redis", "rediss"},
		example:  "redis://HOST:PORT, rediss://…",
		location: []string{"redis.url", "redis.prefix", "redis.replicas"},
		setFresh: func(c *Config) { c.Redis.Prefix = "b" + rand.Text()[:7] }, // short: it is in every key
		open: func(ctx context.Context, c Config) (store.Store, error) {
			r := c.Redis
			r.URL, r.Retention, r.MustExist = c.RedisURL.Reveal(), c.Retention, c.MustExist
			return redisstore.Open(ctx, r)
		},
	},
	{
		name:     MySQL,
		schemes:  []string{"mysql"},
		example:  "mysql://USER@HOST:PORT",
		location: []string{"mysql.url", "sql.schema"},
		setFresh: func(c *Config) {
			c.SQL.Schema = freshSchema()
			if u, err := url.Parse(c.MySQLURL.Reveal()); err == nil && u.Host != "" { // else Open refuses it
				u.Path, u.RawPath = "/", "" // a database here would replace the schema
				c.MySQLURL = secret.New(u.String())
			}
		},
		open: func(ctx context.Context, c Config) (store.Store, error) { return openSQL(ctx, c, c.MySQLURL) },
	},
	{
		name:     Postgres,
		schemes:  []string{"postgres", "postgresql"},
		example:  "postgres://USER@HOST:PORT/DATABASE",
		location: []string{"postgres.url", "sql.schema"},
		setFresh: func(c *Config) { c.SQL.Schema = freshSchema() },
		open:     func(ctx context.Context, c Config) (store.Store, error) { return openSQL(ctx, c, c.PostgresURL) },
	},
}

func freshSchema() string { return "sagabench_" + strings.ToLower(rand.Text()[:8]) }

// Config is the configuration of all stores. conf.sample.yml describes its settings.
type Config struct {
	Retention time.Duration // of finished sagas
	Lease     time.Duration // the coordinators'
	MustExist bool          // Open fails with store.ErrAbsent, and creates nothing, if there is no store yet
	Log       *slog.Logger  // of what happens in the background; nil: none

	// The fields above and the URLs below replace those in here.
	Pebble pebblestore.Config
	Redis  redisstore.Config
	SQL    sqlstore.Config

	RedisURL, MySQLURL, PostgresURL secret.Text
}

// DefaultConfig returns the defaults of the stores' packages.
func DefaultConfig() Config {
	c := Config{Pebble: pebblestore.DefaultConfig(), Redis: redisstore.DefaultConfig(), SQL: sqlstore.DefaultConfig()}
	c.Retention, c.Lease, c.RedisURL = c.Redis.Retention, c.SQL.Lease, secret.New(c.Redis.URL)
	return c
}

// Keys returns a pointer to each setting, by its key in the configuration file.
func (c *Config) Keys() map[string]any {
	return map[string]any{
		"store.retention": &c.Retention,

		"pebble.dir":  &c.Pebble.Dir,
		"pebble.sync": &c.Pebble.Sync,

		"redis.url":      &c.RedisURL,
		"redis.prefix":   &c.Redis.Prefix,
		"redis.shards":   &c.Redis.Shards,
		"redis.timeout":  &c.Redis.Timeout,
		"redis.conns":    &c.Redis.Conns,
		"redis.replicas": &c.Redis.Replicas,

		"mysql.url":    &c.MySQLURL,
		"postgres.url": &c.PostgresURL,
		"sql.schema":   &c.SQL.Schema,
		"sql.timeout":  &c.SQL.Timeout,
		"sql.conns":    &c.SQL.Conns,
	}
}
