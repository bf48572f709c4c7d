package barrier

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/go-sql-driver/mysql"
)

// DefaultTable is the table of dtm's barriers, in the database
// dtm_barrier on MySQL and the schema dtm_barrier on PostgreSQL.
const DefaultTable = "dtm_barrier.barrier"

// Dialect is the SQL dialect of a server.
type Dialect int

// The SQL servers that barriers work with.
const (
	MySQL    Dialect = iota + 1 // MariaDB too
	Postgres                    // any driver whose errors have a method SQLState
)

// A transaction that the server rolled back in favour of another is retried, after a random
// pause of up to retryPause times the number of tries.
const (
	maxTries   = 5
	retryPause = 5 * time.Millisecond
)

// Call runs work in a transaction, unless the marks say that there is nothing to do; the
// package comment has the table. If work fails, Call rolls back and returns its error
// unchanged. If the commit fails, the outcome is unknown; the next call finds out.
//
// Work must use tx for everything that must happen once, and must not commit or roll back.
// If the server rolls back because of a deadlock or a conflict, work runs again: concurrent
// failing calls of one branch always deadlock on MySQL.
//
// gid, trans_type, branch_id and op must be visible ASCII without semicolons, of at most
// 128, 45, 128 and 45 bytes.
func (b *Barrier) Call(ctx context.Context, db *sql.DB, dialect Dialect, work func(tx *sql.Tx) error) error {
	u, err := b.next()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := u.inTx(ctx, db, dialect, work)
		if try == maxTries || !rolledBackByServer(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(try) * retryPause)):
		}
	}
}

// CallTx is Call in the caller's transaction. It should come first there: it may wait for
// another call of the branch, and earlier reads would be out of date. The caller commits, and
// must roll back after an error, or the call stays marked without its work.
func (b *Barrier) CallTx(ctx context.Context, tx *sql.Tx, dialect Dialect, work func(tx *sql.Tx) error) error {
	u, err := b.next()
	if err != nil {
		return err
	}
	return u.do(ctx, tx, dialect, work)
}

func (u use) inTx(ctx context.Context, db *sql.DB, dialect Dialect, work func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin the transaction of a barrier: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // when work panics, too; no effect after the commit
	if err := u.do(ctx, tx, dialect, work); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit the transaction of a barrier: %w", err)
	}
	return nil
}

func (u use) do(ctx context.Context, tx *sql.Tx, dialect Dialect, work func(*sql.Tx) error) error {
	statement, err := insertStatement(dialect, u.Table)
	if err != nil {
		return err
	}
	neverDone := false
	if u.undoes != "" {
		if neverDone, err = u.mark(ctx, tx, statement, u.undoes); err != nil {
			return err
		}
	}
	first, err := u.mark(ctx, tx, statement, u.Op)
	if err != nil || neverDone || !first {
		return err
	}
	return work(tx)
}

// mark inserts the row of an op, and reports whether it was new.
func (u use) mark(ctx context.Context, tx *sql.Tx, statement, op string) (bool, error) {
	reason := u.Op // whose call it was
	result, err := tx.ExecContext(ctx, statement, u.TransType, u.GID, u.BranchID, op, u.id, reason)
	if err != nil {
		return false, fmt.Errorf("mark %s of branch %s of %s: %w", op, u.BranchID, u.GID, err)
	}
	rows, err := result.RowsAffected()
	return rows > 0, err
}

func insertStatement(dialect Dialect, table string) (string, error) {
	table, err := tableName(table)
	if err != nil {
		return "", err
	}
	into := "INTO " + table + " (trans_type, gid, branch_id, op, barrier_id, reason) VALUES "
	switch dialect {
	case MySQL:
		return "INSERT IGNORE " + into + "(?, ?, ?, ?, ?, ?)", nil
	case Postgres:
		return "INSERT " + into + "($1, $2, $3, $4, $5, $6) ON CONFLICT (gid, branch_id, op, barrier_id) DO NOTHING", nil
	default:
		return "", unknownDialect(dialect)
	}
}

func unknownDialect(dialect Dialect) error {
	return fmt.Errorf("barrier: unknown SQL dialect %d", dialect)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// tableName checks a name that becomes part of a statement.
func tableName(table string) (string, error) {
	if table == "" {
		return DefaultTable, nil
	}
	if !identifier.MatchString(table) {
		return "", fmt.Errorf("barrier: %q is not a valid table name", table)
	}
	return table, nil
}

// rolledBackByServer reports whether the server rolled the transaction back in favour of
// another, so that it may be retried.
func rolledBackByServer(err error) bool {
	const (
		mysqlDeadlock         = 1213
		postgresSerialization = "40001"
		postgresDeadlock      = "40P01"
	)
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number == mysqlDeadlock
	}
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState() == postgresDeadlock || e.SQLState() == postgresSerialization
	}
	return false
}
