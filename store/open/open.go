// Package open turns the name of a store, as a person types it, into the store.
// It is the one package that knows all engines.
package open

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"sagabench/store"
	"sagabench/store/pebblestore"
	"sagabench/store/redisstore"
)

// Config holds what each engine needs; the name decides which is used.
type Config struct {
	Redis  redisstore.Config
	Pebble pebblestore.Config
}

// Names of the engines.
const (
	Pebble = "pebble"
	Redis  = "redis"
)

// Target is a store that can be opened.
type Target struct {
	Driver string // Pebble or Redis
	Config Config // with what the name said put in
}

// Parse understands pebble, pebble:DIR, redis and redis://… or rediss://…. What
// the name leaves open is taken from the configuration. The error wraps
// store.ErrInvalid.
func Parse(name string, cfg Config) (Target, error) {
	driver, rest, _ := strings.Cut(name, ":")
	switch driver {
	case Pebble:
		if rest != "" {
			cfg.Pebble.Dir = rest
		}
		return Target{Driver: Pebble, Config: cfg}, nil
	case Redis, "rediss":
		if name != Redis {
			cfg.Redis.URL = name
		}
		return Target{Driver: Redis, Config: cfg}, nil
	default:
		return Target{}, fmt.Errorf("%w: store: %q is none: want pebble, pebble:DIR, redis, redis://HOST:PORT or rediss://HOST:PORT",
			store.ErrInvalid, Redact(name))
	}
}

// Open opens the store.
func (t Target) Open(ctx context.Context) (store.Store, error) {
	if t.Driver == Redis {
		return redisstore.Open(ctx, t.Config.Redis)
	}
	return pebblestore.Open(ctx, t.Config.Pebble)
}

// Redact is a name or URL with its password left out, for messages and results.
func Redact(name string) string {
	if !strings.Contains(name, "://") {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		scheme, _, _ := strings.Cut(name, "://")
		return scheme + "://***"
	}
	if _, set := u.User.Password(); set {
		return strings.Replace(u.Redacted(), ":xxxxx@", ":***@", 1)
	}
	return u.String()
}
