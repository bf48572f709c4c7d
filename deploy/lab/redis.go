package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// RedisConfig says which Redis to start, and how.
type RedisConfig struct {
	Binary string // name on PATH or path; empty: redis-server

	// Settings are the lines of a redis.conf: "appendonly": "yes". They add to
	// and override the defaults: one port of the loopback interface, nothing
	// kept on disk, a random password. A value of several lines makes several
	// directives of one name; an empty value is Redis' "". The value of
	// requirepass is the password itself, without quotes.
	Settings map[string]string

	// Dir is where Redis keeps its files; it is made when it does not exist.
	// Empty: a temporary directory that Stop removes.
	Dir string

	// SlowSync lets Server.SlowSync delay the server's syncs. It takes Linux and a
	// C compiler.
	SlowSync bool
}

// RedisServersVariable names the environment variable that lists further Redis
// binaries for RedisBinaries, separated as in PATH.
const RedisServersVariable = "LAB_REDIS_SERVERS"

const redisServer = "redis-server"

// RedisBinaries lists the Redis servers that tests should run against: the one
// on PATH, then those that RedisServersVariable names.
func RedisBinaries() []string {
	return append([]string{redisServer}, listed(RedisServersVariable)...)
}

// StartRedis starts a Redis server and waits until it has loaded its data and
// answers. It lets nobody in without the password in [Server.URL]. When root
// starts it, it runs as redis. The error is ErrNotInstalled without the binary,
// and holds the server's own words when it refuses its settings.
func StartRedis(ctx context.Context, cfg RedisConfig) (*Server, error) {
	path, err := lookServer(cmp.Or(cfg.Binary, redisServer), "redis-server", "redis")
	if err != nil {
		return nil, err
	}
	account, err := unprivileged(redisAccount)
	if err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	settings := map[string]string{
		"bind":           "127.0.0.1",
		"protected-mode": "yes",
		"daemonize":      "no",
		"loglevel":       "warning",
		"save":           "",
		"appendonly":     "no",
	}
	maps.Copy(settings, cfg.Settings)
	port, err := wantedPort("Redis", settings)
	if err != nil {
		return nil, err
	}
	_, acl := settings["user"]
	_, file := settings["aclfile"]
	password, passwordOf := settings["requirepass"], 0 // a port
	random := password == ""

	e := engine{host: dialHost(settings["bind"]), port: port, account: account, slowSync: cfg.SlowSync}
	e.url = func(addr string) string {
		u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: addr}
		return u.String()
	}
	e.command = func(dir string, port int) ProcessConfig {
		if random && port != passwordOf { // whoever had taken the last port may have been told
			password, passwordOf = newPassword(), port
			settings["requirepass"] = password
		}
		return ProcessConfig{
			Path: path,
			// From its standard input, Redis reads its configuration without a
			// file in Dir and without the password in the process list.
			Args:  []string{"-"},
			Stdin: strings.NewReader(redisConf(settings, port)),
			Dir:   dir,
			Ready: func(ctx context.Context, p *Process) error {
				return pingRedis(ctx, hostPort(e.host, port), password, acl || file, p.PID())
			},
		}
	}
	return startServer(ctx, cfg.Dir, e)
}

// redisConf writes the settings as a redis.conf.
func redisConf(settings map[string]string, port int) string {
	var conf strings.Builder
	fmt.Fprintf(&conf, "port %d\n", port)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		switch value := settings[name]; name {
		case "port":
		case "requirepass":
			fmt.Fprintf(&conf, "%s %s\n", name, redisQuote(value))
		default:
			for line := range strings.SplitSeq(value, "\n") {
				if line = strings.TrimSpace(line); line == "" {
					line = `""`
				}
				fmt.Fprintf(&conf, "%s %s\n", name, line)
			}
		}
	}
	return conf.String()
}

// redisQuote makes one argument of a redis.conf line of value.
func redisQuote(value string) string {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for _, c := range []byte(value) {
		switch {
		case c == '"' || c == '\\':
			quoted.WriteByte('\\')
			quoted.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&quoted, `\x%02x`, c)
		default:
			quoted.WriteByte(c)
		}
	}
	quoted.WriteByte('"')
	return quoted.String()
}
