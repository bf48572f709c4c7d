package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
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
	// that runs it. The password is in a file beside Dir, Dir.secret.
	Dir string

	// SlowSync lets Server.SlowSync delay the server's syncs. It takes Linux and a
	// C compiler.
	SlowSync bool
}

// StartPostgres starts a PostgreSQL server and waits until it answers. It lets
// the superuser postgres in, from this machine and with the password in
// [Server.URL]. When root starts it, it runs as postgres. The error is
// ErrNotInstalled without the binary, and holds the server's own words when it
// refuses its settings.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Server, error) {
	path, err := lookServer(cmp.Or(cfg.Binary, "postgres"), "postgresql", "postgresql@17")
	if err != nil {
		return nil, err
	}
	account, err := unprivileged(postgresAccount)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
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

	password := newPassword()

	e := engine{host: dialHost(settings["listen_addresses"]), port: port, account: account, slowSync: cfg.SlowSync}
	e.dsn = func(addr, database string) string {
		u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: addr, RawQuery: "sslmode=disable"}
		return u.JoinPath(cmp.Or(database, "postgres")).String()
	}
	e.url = func(addr string) string { return e.dsn(addr, "") }
	e.prepare = func(ctx context.Context, dir string) (err error) {
		password, err = fillPostgres(ctx, path, account, dir, password)
		return err
	}
	e.command = func(dir string, port int) ProcessConfig {
		return ProcessConfig{
			Path:       path,
			Args:       postgresArgs(settings, dir, port),
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

// fillPostgres makes a database cluster in dir, unless there is one, and returns
// the password of its superuser.
func fillPostgres(ctx context.Context, server, account, dir, newPassword string) (password string, err error) {
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		known, err := os.ReadFile(secretFile(dir))
		if err != nil {
			return "", fmt.Errorf("start PostgreSQL: its directory was filled by somebody else: %w", err)
		}
		return string(known), nil
	}
	server, err = filepath.EvalSymlinks(server)
	if err != nil {
		return "", fmt.Errorf("find the files of PostgreSQL: %w", err)
	}
	initdb := filepath.Join(filepath.Dir(server), "initdb")
	if !isFile(initdb) {
		return "", fmt.Errorf("initdb, beside %s, is %w", server, ErrNotInstalled)
	}
	if err := writeSecret(dir, account, newPassword); err != nil {
		return "", err
	}
	return newPassword, runProcess(ctx, ProcessConfig{
		Path: initdb,
		// --no-sync: what is written here need not survive this machine's crash.
		Args: []string{
			"-D", dir, "-U", "postgres", "--auth=scram-sha-256", "--pwfile=" + secretFile(dir),
			"--encoding=UTF8", "--locale=C", "--no-sync",
		},
		User: account,
	})
}
