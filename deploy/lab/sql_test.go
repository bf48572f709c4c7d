//go:build unix

package lab_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// sqlKind is one kind of SQL server under the same tests.
type sqlKind struct {
	name, driver string
	binary       string // empty: the one that is installed
	start        func(ctx context.Context, binary, dir string, settings map[string]string) (*lab.Server, error)
	settings     map[string]string // of class D3, in the words of the server
	read         string            // the query that reads one back
	quick        map[string]string // settings that spare the disk
	install      string
}

func forEachSQL(t *testing.T, test func(t *testing.T, kind sqlKind)) {
	t.Parallel()
	kinds := []sqlKind{postgresKind()}
	for _, binary := range lab.MySQL.Binaries() {
		kinds = append(kinds, mysqlKind(binary))
	}
	for _, kind := range kinds {
		t.Run(kind.name+kind.binary, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

func mysqlKind(installed string) sqlKind {
	return sqlKind{
		name: "mysql", driver: "mysql", binary: installed, install: "apt-get install mariadb-server",
		start: func(ctx context.Context, binary, dir string, settings map[string]string) (*lab.Server, error) {
			return lab.MySQL.Start(ctx, lab.Config{Binary: cmp.Or(binary, installed), Dir: dir, Settings: settings})
		},
		settings: map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "", "server_id": "7"},
		read:     "SELECT @@%s",
		quick:    map[string]string{"loose_debug_no_sync": ""},
	}
}

func postgresKind() sqlKind {
	return sqlKind{
		name: "postgres", driver: "pgx", install: "apt-get install postgresql",
		start: func(ctx context.Context, binary, dir string, settings map[string]string) (*lab.Server, error) {
			return lab.Postgres.Start(ctx, lab.Config{Binary: binary, Dir: dir, Settings: settings})
		},
		settings: map[string]string{"synchronous_commit": "on", "fsync": "on", "max_connections": "7"},
		read:     "SHOW %s",
		quick:    map[string]string{"fsync": "off"},
	}
}

// test starts a server for one test.
func (k sqlKind) test(t *testing.T, dir string, settings map[string]string) *lab.Server {
	t.Helper()
	server, err := k.start(t.Context(), "", dir, settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func (k sqlKind) open(t *testing.T, server *lab.Server, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open(k.driver, server.DSN(database))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func run(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func value(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var v string
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&v), query)
	return v
}

// childrenOf lists the processes that pid started; there is no /proc outside
// Linux.
func childrenOf(pid int) []int {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var pids []int
	for field := range strings.FieldsSeq(string(list)) {
		var child int
		if _, err := fmt.Sscan(field, &child); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func TestStartSQL_AppliesSettings_AndStopLeavesNothing(t *testing.T) {
	forEachSQL(t, func(t *testing.T, kind sqlKind) {
		server := kind.test(t, "", kind.settings)
		db := kind.open(t, server, "")
		for name, want := range kind.settings {
			if want == "" {
				want = "1"
			}
			require.Equal(t, want, value(t, db, fmt.Sprintf(kind.read, name)), name)
		}
		require.Contains(t, server.URL(), server.Addr())

		require.NoError(t, server.Stop(), "with a client connected")
		require.NoDirExists(t, server.Dir())
		requireGone(t, server.PID())
	})
}

func TestRestartSQL_KeepsDataAndAddress(t *testing.T) {
	forEachSQL(t, func(t *testing.T, kind sqlKind) {
		server := kind.test(t, "", kind.quick)
		addr, pid := server.Addr(), server.PID()
		run(t, kind.open(t, server, ""), "CREATE DATABASE things")
		db := kind.open(t, server, "things")
		run(t, db, "CREATE TABLE thing (n int)")
		run(t, db, "INSERT INTO thing VALUES (1)")
		require.NoError(t, server.Restart(t.Context()))
		requireGone(t, pid)
		requireAnswer(t, db)
		run(t, db, "INSERT INTO thing VALUES (2)")

		family := append(childrenOf(server.PID()), server.PID())
		cut := make(chan error, 1)
		go func() {
			var n int
			cut <- db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.columns a, "+
				"information_schema.columns b, information_schema.columns c").Scan(&n)
		}()
		require.Eventually(t, func() bool { return db.Stats().InUse == 1 }, time.Minute, time.Millisecond)
		require.NoError(t, server.Kill())
		require.Error(t, <-cut)
		for _, p := range family {
			requireGone(t, p)
		}
		requireRefused(t, addr)
		require.NoError(t, server.Restart(t.Context()))
		require.Equal(t, addr, server.Addr())
		requireAnswer(t, db)
		require.Equal(t, "3", value(t, db, "SELECT sum(n) FROM thing"))
		require.NoError(t, server.Kill(), "which Stop, at the end, should not mind")
	})
}

// requireAnswer waits until db has noticed that its connections are gone.
func requireAnswer(t *testing.T, db *sql.DB) {
	t.Helper()
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, time.Minute, time.Millisecond)
}

func TestStopSQL_KeepsADirectoryThatIsNotOurs(t *testing.T) {
	forEachSQL(t, func(t *testing.T, kind sqlKind) {
		// Relative, and too long for a socket.
		here, err := os.Getwd()
		require.NoError(t, err)
		dir, err := filepath.Rel(here, filepath.Join(enterable(t), strings.Repeat("long", 25), "data"))
		require.NoError(t, err)
		server := kind.test(t, dir, kind.quick)
		run(t, kind.open(t, server, ""), "CREATE DATABASE kept")
		require.NoError(t, server.Stop())
		require.Error(t, server.Restart(t.Context()))

		taken, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer taken.Close()
		_, port, err := net.SplitHostPort(taken.Addr().String())
		require.NoError(t, err)
		_, err = kind.start(t.Context(), "", dir, map[string]string{"port": port})
		require.ErrorContains(t, err, "Address already in use")
		_, err = kind.start(t.Context(), "", dir, map[string]string{"no_such_setting": "1"})
		require.ErrorContains(t, err, "no_such_setting")

		again := kind.test(t, dir, kind.quick)
		require.NoError(t, kind.open(t, again, "kept").PingContext(t.Context()))
	})
}

func TestStartSQL_LeavesNoOrphan_WhenItsStarterIsKilled(t *testing.T) {
	forEachSQL(t, func(t *testing.T, kind sqlKind) {
		self, err := os.Executable()
		require.NoError(t, err)
		child := start(t, lab.ProcessConfig{
			Path: self, Env: append(os.Environ(), childVariable+"="+kind.name+" "+kind.binary), Ready: said("\n"),
		})
		var pid int
		var dir string
		_, err = fmt.Sscanln(child.Log(), &pid, &dir)
		require.NoError(t, err, child.Log())
		require.NoError(t, syscall.Kill(pid, 0), "the server should run")
		family := append(childrenOf(pid), pid)

		child.Kill()
		for _, p := range family {
			requireGone(t, p)
		}
		require.NoError(t, labtest.Start(t, lab.Redis, lab.Config{}).Stop())
		require.NoDirExists(t, dir, "the next lab should sweep it")
	})
}

func TestStartSQL_SaysWhatIsWrong(t *testing.T) {
	forEachSQL(t, func(t *testing.T, kind sqlKind) {
		_, err := kind.start(t.Context(), "/nowhere/server", "", nil)
		require.ErrorIs(t, err, lab.ErrNotInstalled)
		require.ErrorContains(t, err, "/nowhere/server")
		require.ErrorContains(t, err, kind.install)

		_, err = kind.start(t.Context(), "", "", map[string]string{"port": "0"})
		require.ErrorContains(t, err, `port "0", must be 1 to 65535`)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = kind.start(ctx, "", "", nil)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestBinaries_AddsThoseOfTheEnvironment(t *testing.T) {
	t.Setenv("LAB_REDIS_SERVERS", "")
	require.Equal(t, []string{"redis-server"}, lab.Redis.Binaries())
	t.Setenv("LAB_REDIS_SERVERS", "/old/redis-5:redis-6")
	require.Equal(t, []string{"redis-server", "/old/redis-5", "redis-6"}, lab.Redis.Binaries())
	t.Setenv("LAB_MYSQL_SERVERS", "/opt/mysql-8.0/mysqld::/opt/mysql-8.4/mysqld")
	require.Equal(t, []string{"mariadbd|mysqld", "/opt/mysql-8.0/mysqld", "/opt/mysql-8.4/mysqld"}, lab.MySQL.Binaries())
}

// Two servers that do for the same are told apart by PATH, wherever they are.
func TestFindServer_TakesTheDirectoryThatIsFirst(t *testing.T) {
	one, both := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(one, "mysqld"), filepath.Join(both, "mysqld"), filepath.Join(both, "mariadbd")} {
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(one, "mariadbd"), nil, 0o644), "which cannot be run")
	for path, want := range map[string]string{
		one + ":" + both:        filepath.Join(one, "mysqld"),
		both + ":" + one:        filepath.Join(both, "mariadbd"),
		":nowhere:.:" + both:    filepath.Join(both, "mariadbd"),
		t.TempDir() + ":" + one: filepath.Join(one, "mysqld"),
	} {
		t.Setenv("PATH", path)
		got, err := lab.FindServer("mariadbd|mysqld", "", "")
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
	}
}

func TestDepsScript_LooksWhereTheLabDoes(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../deps.sh")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(script), "for dir in ")
	list, _, found := strings.Cut(after, "; do")
	require.True(t, found)
	require.Equal(t, lab.ServerDirs(), strings.Fields(strings.ReplaceAll(list, "\\\n", " ")))
}
