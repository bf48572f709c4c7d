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

// stores describes every store. Adding one takes an entry here, a field of Config
// and a section of Settings.
var stores = []descriptor{
	{
		name: Pebble,
		common: func(c *Config) common {
			p := &c.Pebble
			return common{dir: &p.Dir, retention: &p.Retention, mustExist: &p.MustExist, log: &p.Log}
		},
		location: func(c Config) map[string]string { return map[string]string{"pebble.dir": c.Pebble.Dir} },
		open:     func(ctx context.Context, c Config) (store.Store, error) { return pebblestore.Open(ctx, c.Pebble) },
	},
	{
		name:    Redis,
		schemes: []string{"redis", "rediss"},
		example: "redis://HOST:PORT, rediss://…",
		common: func(c *Config) common {
			r := &c.Redis
			return common{url: &r.URL, retention: &r.Retention, mustExist: &r.MustExist}
		},
		setFresh: func(c *Config) { c.Redis.Prefix = "b" + rand.Text()[:7] }, // short: it is in every key
		location: func(c Config) map[string]string {
			return map[string]string{"redis.url": c.Redis.URL, "redis.prefix": c.Redis.Prefix}
		},
		open: func(ctx context.Context, c Config) (store.Store, error) { return redisstore.Open(ctx, c.Redis) },
	},
	{
		name:    MySQL,
		schemes: []string{"mysql"},
		example: "mysql://USER@HOST:PORT",
		common:  func(c *Config) common { return sqlCommon(&c.MySQL) },
		setFresh: func(c *Config) {
			c.MySQL.URL, c.MySQL.Schema = withoutDatabase(c.MySQL.URL), freshSchema()
		},
		schema: func(c Config) string { return mysqlSchema(c.MySQL) },
		location: func(c Config) map[string]string {
			return map[string]string{"mysql.url": c.MySQL.URL, "sql.schema": mysqlSchema(c.MySQL)}
		},
		open: func(ctx context.Context, c Config) (store.Store, error) { return openSQL(ctx, c.MySQL) },
	},
	{
		name:     Postgres,
		schemes:  []string{"postgres", "postgresql"},
		example:  "postgres://USER@HOST:PORT/DATABASE",
		common:   func(c *Config) common { return sqlCommon(&c.Postgres) },
		setFresh: func(c *Config) { c.Postgres.Schema = freshSchema() },
		schema:   func(c Config) string { return c.Postgres.Schema },
		location: func(c Config) map[string]string {
			return map[string]string{"postgres.url": c.Postgres.URL, "sql.schema": c.Postgres.Schema}
		},
		open: func(ctx context.Context, c Config) (store.Store, error) { return openSQL(ctx, c.Postgres) },
	},
}

// descriptor is what this package knows of one store.
type descriptor struct {
	name    string
	schemes []string // of the URLs of its servers; none: the store is embedded
	example string   // URLs as the list of names shows them

	common   func(*Config) common           // its settings that other stores have too
	setFresh func(*Config)                  // see Target.Fresh; nil: leaves it as it is
	schema   func(Config) string            // see Target.Schema; nil: it has none
	location func(Config) map[string]string // see Target.Location
	open     func(context.Context, Config) (store.Store, error)
}

// common points to settings of one store. A store without a setting has nil.
type common struct {
	dir       *string // of an embedded store
	url       *string // of the server
	retention *time.Duration
	mustExist *bool
	log       **slog.Logger
}

// Config is the configuration of each store. A Target uses one of them.
type Config struct {
	Pebble   pebblestore.Config
	Redis    redisstore.Config
	MySQL    sqlstore.Config
	Postgres sqlstore.Config
}

// Settings are the settings of all stores. conf.sample.yml describes them.
type Settings struct {
	Retention time.Duration // of finished sagas, in every store
	Pebble    pebblestore.Config
	Redis     redisstore.Config // without its URL
	SQL       sqlstore.Config   // likewise

	RedisURL, MySQLURL, PostgresURL secret.Text
}

// DefaultSettings returns the defaults of the stores' packages.
func DefaultSettings() Settings {
	s := Settings{Pebble: pebblestore.DefaultConfig(), Redis: redisstore.DefaultConfig(), SQL: sqlstore.DefaultConfig()}
	s.Retention = s.Redis.Retention
	s.RedisURL, s.Redis.URL = secret.New(s.Redis.URL), ""
	return s
}

// Keys returns a pointer to each setting, by its key in the configuration file.
func (s *Settings) Keys() map[string]any {
	return map[string]any{
		"store.retention": &s.Retention,

		"pebble.dir":  &s.Pebble.Dir,
		"pebble.sync": &s.Pebble.Sync,

		"redis.url":     &s.RedisURL,
		"redis.prefix":  &s.Redis.Prefix,
		"redis.shards":  &s.Redis.Shards,
		"redis.timeout": &s.Redis.Timeout,
		"redis.conns":   &s.Redis.Conns,

		"mysql.url":    &s.MySQLURL,
		"postgres.url": &s.PostgresURL,
		"sql.schema":   &s.SQL.Schema,
		"sql.timeout":  &s.SQL.Timeout,
		"sql.conns":    &s.SQL.Conns,
	}
}

// Config returns the stores' configurations. lease is the coordinator's.
func (s Settings) Config(lease time.Duration) Config {
	c := Config{Pebble: s.Pebble, Redis: s.Redis, MySQL: s.SQL, Postgres: s.SQL}
	c.Redis.URL, c.MySQL.URL, c.Postgres.URL = s.RedisURL.Reveal(), s.MySQLURL.Reveal(), s.PostgresURL.Reveal()
	c.Pebble.Retention, c.Redis.Retention, c.MySQL.Retention, c.Postgres.Retention = s.Retention, s.Retention, s.Retention, s.Retention
	c.MySQL.Lease, c.Postgres.Lease = lease, lease
	return c
}

func sqlCommon(c *sqlstore.Config) common {
	return common{url: &c.URL, retention: &c.Retention, mustExist: &c.MustExist, log: &c.Log}
}

func freshSchema() string { return "sagabench_" + strings.ToLower(rand.Text()[:8]) }

// mysqlSchema returns the database in the URL, which replaces the schema, or else
// the schema.
func mysqlSchema(c sqlstore.Config) string {
	if u, err := url.Parse(c.URL); err == nil && strings.Trim(u.Path, "/") != "" {
		return strings.Trim(u.Path, "/")
	}
	return c.Schema
}

// withoutDatabase removes the database from a URL for MySQL. It returns a text that
// is no URL unchanged: Open refuses it.
func withoutDatabase(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	u.Path, u.RawPath = "/", ""
	return u.String()
}
