package cli

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/store/open"
)

// sqlKind is a kind of SQL server. Tests that neither stop it nor count what it
// does share one.
type sqlKind struct {
	name   string
	driver string // of database/sql
	mu     sync.Mutex
	shared *lab.Server
}

var (
	mysqlKind    = &sqlKind{name: open.MySQL, driver: "mysql"}
	postgresKind = &sqlKind{name: open.Postgres, driver: "pgx"}
	sqlKinds     = []*sqlKind{mysqlKind, postgresKind}
)

func forEachSQL(t *testing.T, test func(t *testing.T, k *sqlKind)) {
	t.Parallel()
	for _, k := range sqlKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// start starts a server whose class is D3, unless the settings say otherwise.
func (k *sqlKind) start(ctx context.Context, settings map[string]string) (*lab.Server, error) {
	return lab.Kinds[k.name].Start(ctx, lab.Config{Settings: settings})
}

// own starts a server for one test.
func (k *sqlKind) own(t *testing.T, settings map[string]string) *lab.Server {
	t.Helper()
	server, err := k.start(context.WithoutCancel(t.Context()), settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// server is the shared one. It does not wait for the disk. Its clerk's password is
// topsecret, and the clerk may do nothing.
func (k *sqlKind) server(t *testing.T) *lab.Server {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shared != nil {
		return k.shared
	}
	clerk := "CREATE USER clerk IDENTIFIED BY 'topsecret'"
	if k == postgresKind {
		clerk = "CREATE ROLE clerk LOGIN PASSWORD 'topsecret'"
	}
	server, err := k.start(context.WithoutCancel(t.Context()), k.withoutSync())
	require.NoError(t, err)
	k.shared = server
	execute(t, k.admin(t, server), clerk)
	return server
}

// withoutSync is the setting of a server that does not wait for the disk.
func (k *sqlKind) withoutSync() map[string]string {
	if k == mysqlKind {
		return map[string]string{"innodb_flush_method": "nosync"}
	}
	return map[string]string{"fsync": "off"}
}

func stopServers() {
	for _, k := range sqlKinds {
		if k.shared != nil {
			if err := k.shared.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
}

// admin is a connection of somebody who may do everything.
func (k *sqlKind) admin(t *testing.T, server *lab.Server) *sql.DB {
	t.Helper()
	return k.connect(t, server.DSN(""))
}

func (k *sqlKind) connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(k.driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// schemas are those that are named so.
func schemas(t *testing.T, db *sql.DB, like string) (names []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE '"+like+"' ORDER BY 1")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	require.NoError(t, rows.Err())
	return names
}

// login is the URL of somebody else.
func (k *sqlKind) login(server *lab.Server, user, password, database, options string) string {
	u := url.URL{Scheme: k.name, User: url.UserPassword(user, password), Host: server.Addr(), Path: "/" + database, RawQuery: options}
	return u.String()
}

// handOver lets a server read the files in a directory of the test's: root runs it
// as an account.
func handOver(t *testing.T, dir, account string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	found, err := user.Lookup(account)
	require.NoError(t, err)
	uid, err := strconv.Atoi(found.Uid)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, path := range append(paths, dir) {
		require.NoError(t, os.Chown(path, uid, -1))
	}
}

// plain is the option that does without TLS.
func (k *sqlKind) plain() string {
	if k == mysqlKind {
		return "tls=false"
	}
	return "sslmode=disable"
}
