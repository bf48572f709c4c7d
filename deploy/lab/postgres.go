package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// PostgresConfig says which PostgreSQL to start, and how.
type PostgresConfig struct {
	Binary string // name on PATH or path; empty: postgres. It needs initdb beside it.

	// Settings are the parameters of a postgresql.conf: "synchronous_commit":
	// "off". They add to and override the defaults: one port of the loopback
	// interface; the rest is the server's own default.
	Settings map[string]string

	// Dir is where the server keeps its files; it is made when it does not exist,
	// and filled when there is no database in it. Empty: a temporary directory
	// that Stop removes. When root starts the server, Dir goes to the account
	// that runs it.
	Dir string
}

// StartPostgres starts a PostgreSQL server and waits until it answers. It lets
// the superuser postgres in, from this machine and without a password. The error
// is ErrNotInstalled without the binary, and holds the server's own words when it
// refuses its settings.
//
// PostgreSQL does not run as root. Root runs it as postgres, or as nobody where
// there is no such account.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Server, error) {
	path, err := lookServer(cmp.Or(cfg.Binary, "postgres"), "postgresql", "postgresql@17")
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	settings := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"unix_socket_directories":    "",     // none: their paths may not be long
		"dynamic_shared_memory_type": "mmap", // in Dir, which goes away even after a kill
	}
	maps.Copy(settings, cfg.Settings)
	port, err := wantedPort("PostgreSQL", settings)
	if err != nil {
		return nil, err
	}

	e := engine{host: dialHost(settings["listen_addresses"]), port: port}
	e.dsn = func(addr, database string) string {
		u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: addr, RawQuery: "sslmode=disable"}
		return u.JoinPath(cmp.Or(database, "postgres")).String()
	}
	e.url = func(addr string) string { return e.dsn(addr, "") }
	e.prepare = func(ctx context.Context, dir string) error { return fillPostgres(ctx, path, account, dir) }
	e.command = func(dir string, port int) ProcessConfig {
		return ProcessConfig{
			Path:       path,
			Args:       postgresArgs(settings, dir, port),
			User:       account,
			StopSignal: syscall.SIGINT, // SIGTERM waits until all clients have left
			Ready: func(ctx context.Context, p *Process) error {
				return pingPostgres(ctx, hostPort(e.host, port), dir, p.PID())
			},
		}
	}
	return startServer(ctx, cfg.Dir, e)
}

// postgresArgs writes the settings as a command line.
func postgresArgs(settings map[string]string, dir string, port int) []string {
	args := []string{"-D", dir, "-p", strconv.Itoa(port)}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "port" {
			args = append(args, "-c", name+"="+settings[name])
		}
	}
	return args
}

// fillPostgres makes a database cluster in dir, unless there is one.
func fillPostgres(ctx context.Context, server, account, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return nil
	}
	if account != "" {
		if err := giveDir(dir, account); err != nil {
			return fmt.Errorf("prepare a directory for PostgreSQL: %w", err)
		}
	}
	server, err := filepath.EvalSymlinks(server)
	if err != nil {
		return fmt.Errorf("find the files of PostgreSQL: %w", err)
	}
	initdb := filepath.Join(filepath.Dir(server), "initdb")
	if !isFile(initdb) {
		return fmt.Errorf("initdb, beside %s, is %w", server, ErrNotInstalled)
	}
	return runProcess(ctx, ProcessConfig{
		Path: initdb,
		// --no-sync: what is written here need not survive this machine's crash.
		Args: []string{"-D", dir, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"},
		User: account,
	})
}

// unprivileged is the account for what must not run as root; empty, ours, unless
// we are root.
func unprivileged() (string, error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	for _, account := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(account); err == nil {
			return account, nil
		}
	}
	return "", errors.New("start PostgreSQL: it does not run as root, and there is no account postgres or nobody")
}
