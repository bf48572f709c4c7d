package sqlstore

import (
	"context"
	"database/sql"
	"sync/atomic"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// dialect is how the two kinds of server differ.
type dialect interface {
	// connect opens the pool. On MySQL it creates the database.
	connect(ctx context.Context, cfg Config, dial sqlconn.Dialer) (*sql.DB, error)

	// migrating runs f on one connection and in an existing schema, while no other
	// process does.
	migrating(ctx context.Context, db *sql.DB, cfg Config, f func(tx sqlconn.Session) error) error

	// migrations are the statements of each step of the schema's history. Each
	// may be run again: MySQL cannot roll back half a step.
	migrations() [][]string

	// dropSchema drops the schema unless it contains anything.
	dropSchema(ctx context.Context, db *sql.DB, schema string) error

	// bind turns the parameters of a statement, written as ?, into the server's.
	bind(text string) string

	// gidIn is a condition that is true for rows with these gids, and its arguments.
	gidIn(gids []string) (condition string, args []any)

	// now is an SQL expression: the server's clock, the same throughout a statement.
	now() string

	// table names the table saga in a query that must use this index.
	table(index string) string

	// apply writes all changes that do not conflict, in as few statements as
	// possible, and returns the rest. Unless it returns an error, it has written
	// everything that is not in rest. The retention is in milliseconds. If noWait is
	// set, it fails if a row is locked.
	apply(ctx context.Context, db *sql.DB, c chunk, retention int64, noWait bool) (rest chunk, err error)

	// noWait is a statement after which a transaction fails, at once or soon, if it has
	// to wait for a row of c. It is empty if the server has none.
	noWait(c chunk) string

	// insert inserts new sagas and returns the gids of those that it inserted. If
	// some exist, it may insert none.
	insert(ctx context.Context, tx sqlconn.Session, creates []*store.Create) ([]string, error)

	// skipsLocked reports whether the server has SKIP LOCKED.
	skipsLocked() bool

	// sweep drops up to limit sagas whose retention has ended, and returns how many.
	sweep(ctx context.Context, db *sql.DB, limit int) (int64, error)

	// isDeadlock and isLocked report whether a transaction has had, or will have, no
	// effect: because it lost a deadlock, or because it has waited too long for a lock.
	isDeadlock(err error) bool
	isLocked(err error) bool

	settings(ctx context.Context, db *sql.DB) (store.Settings, error)

	// showsUnflushed reports whether the server, by the settings last read, shows
	// others a commit before it is on disk, and acknowledges it after that.
	showsUnflushed() bool

	// flush returns once every earlier commit is on disk.
	flush(ctx context.Context, db *sql.DB) error
}

// newDialect returns the dialect of a server, which counts unwaited commits: see Store.
func newDialect(server sqlconn.Server, unwaited *atomic.Int64) dialect {
	if server.MySQL != nil {
		return &mysqlDialect{client: server.MySQL, flushRow: "1"}
	}
	return &postgresDialect{client: server.Postgres, unwaited: unwaited}
}

// Indexes, as the dialects name them.
const (
	indexGID = "saga_gid"
	indexDue = "saga_due"
)
