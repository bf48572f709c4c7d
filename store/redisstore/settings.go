package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/store"
	"sagabench/store/redisstore/redisconn"
)

// unreadable is the value of a setting that the server refuses to show, as managed
// servers do.
const unreadable = "unreadable"

// Retention implements store.Store.
func (s *Store) Retention() time.Duration { return s.cfg.Retention }

// Settings implements store.Store. If the server refuses CONFIG, it uses INFO and
// returns the lower class.
func (s *Store) Settings(ctx context.Context) (settings store.Settings, err error) {
	err = s.call(ctx, "settings", func() error {
		settings, err = s.settings(ctx)
		return err
	})
	return settings, err
}

// settings reads those of all servers. The class is the lowest of them; a value that not
// all share lists them.
func (s *Store) settings(ctx context.Context) (settings store.Settings, err error) {
	for i, server := range s.nodes.all() {
		one, err := ServerSettings(ctx, server.Client)
		if err != nil {
			return store.Settings{}, err
		}
		if i == 0 {
			settings = one
			continue
		}
		settings.Durability = min(settings.Durability, one.Durability)
		for name, value := range one.Values {
			if !slices.Contains(strings.Split(settings.Values[name], ", "), value) {
				settings.Values[name] += ", " + value
			}
		}
	}
	if s.cfg.Replicas > 0 {
		settings.Values["replicas waited for"] = strconv.Itoa(s.cfg.Replicas)
		if settings.Durability == store.D3 {
			settings.Durability = store.D4
		}
	}
	if s.nodes.only == nil {
		settings.Values["masters"] = strconv.Itoa(len(s.nodes.all()))
		settings.Values["shards"] = strconv.Itoa(s.cfg.Shards)
	}
	return settings, nil
}

// ServerSettings is Store.Settings of a server that holds no sagas.
func ServerSettings(ctx context.Context, client *redis.Client) (store.Settings, error) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		return store.Settings{}, err
	}
	info := redisconn.Fields(text)
	values := map[string]string{
		"maxmemory":        info["maxmemory"],
		"maxmemory-policy": info["maxmemory_policy"],
		"mem_allocator":    info["mem_allocator"],
		"role":             info["role"],
	}
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save", "io-threads", "repl-backlog-size"} {
		found, err := client.ConfigGet(ctx, name).Result()
		switch value, known := found[name]; {
		case err != nil && !isReply(err):
			return store.Settings{}, err
		case err != nil:
			values[name] = unreadable
		case known: // older servers do not have every one
			values[name] = value
		}
	}
	return store.Settings{
		Driver:     "redis",
		Version:    info["redis_version"],
		Durability: durability(info["aof_enabled"] == "1", values),
		Values:     values,
	}, nil
}

func durability(aof bool, values map[string]string) store.Durability {
	appendfsync, save := values["appendfsync"], values["save"]
	switch {
	case aof && values["no-appendfsync-on-rewrite"] != "no":
		return store.D1 // no fsync for as long as a rewrite or a snapshot takes
	case aof && appendfsync == "always":
		return store.D3
	case aof && appendfsync == "everysec":
		return store.D2
	case aof, save != "" && save != unreadable:
		return store.D1 // whenever the kernel likes, or at the next snapshot
	default:
		return store.D0
	}
}

// isReply reports whether err is a reply of the server, not a lost connection.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
