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

// DefaultTable is where dtm keeps its barriers: a table of the database
// dtm_barrier on MySQL, of the schema dtm_barrier on PostgreSQL.
const DefaultTable = "dtm_barrier.barrier"

// Dialect is the language of a SQL server.
type Dialect int

// The SQL servers that barriers work with.
const (
	MySQL    Dialect = iota + 1 // MariaDB too
	Postgres                    // any driver whose errors have a method SQLState
)

// A transaction that the server gave up for another's sake is tried again, after
// a random pause of up to retryPause for each try so far.
const (
	maxTries   = 5
	retryPause = 5 * time.Millisecond
)

// Call does work in a transaction, unless the barrier says that there is nothing
// to do; the package comment has the table. It returns the error of work as it
// is, having rolled back. When the commit itself fails, the outcome is unknown,
// and the next call finds it out.
//
// Work must use tx for everything that is to happen once, and leave commit and
// rollback to Call. When the server rolls back on its own account, because of a
// deadlock or a conflict, work is done again: calls of one branch that fail at the
// same moment deadlock on MySQL, whatever they do.
//
// gid, trans_type, branch_id and op must be visible ASCII without semicolons, of
// at most 128, 45, 128 and 45 bytes.
func (b *Barrier) Call(ctx context.Context, db *sql.DB, dialect Dialect, work func(tx *sql.Tx) error) error {
	p, err := b.pass()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := p.inTx(ctx, db, dialect, work)
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

// CallTx is Call in a transaction of the caller. It should be the first thing
// there: what was read before may be out of date when another call of the branch
// had to be waited for. The caller commits, and must roll back when there is an
// error, or the call would stay marked without its work.
func (b *Barrier) CallTx(ctx context.Context, tx *sql.Tx, dialect Dialect, work func(tx *sql.Tx) error) error {
	p, err := b.pass()
	if err != nil {
		return err
	}
	return p.do(ctx, tx, dialect, work)
}

func (p passage) inTx(ctx context.Context, db *sql.DB, dialect Dialect, work func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin the transaction of a barrier: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // when work panics, too; no effect after the commit
	if err := p.do(ctx, tx, dialect, work); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit the transaction of a barrier: %w", err)
	}
	return nil
}

func (p passage) do(ctx context.Context, tx *sql.Tx, dialect Dialect, work func(*sql.Tx) error) error {
	statement, err := insertStatement(dialect, p.Table)
	if err != nil {
		return err
	}
	neverDone := false
	if p.undoes != "" {
		if neverDone, err = p.mark(ctx, tx, statement, p.undoes); err != nil {
			return err
		}
	}
	first, err := p.mark(ctx, tx, statement, p.Op)
	if err != nil || neverDone || !first {
		return err
	}
	return work(tx)
}

// mark inserts the row of an op and reports whether it was not there.
func (p passage) mark(ctx context.Context, tx *sql.Tx, statement, op string) (bool, error) {
	reason := p.Op // whose call it was
	result, err := tx.ExecContext(ctx, statement, p.TransType, p.GID, p.BranchID, op, p.id, reason)
	if err != nil {
		return false, fmt.Errorf("mark %s of branch %s of %s: %w", op, p.BranchID, p.GID, err)
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

// tableName checks what becomes part of a statement.
func tableName(table string) (string, error) {
	if table == "" {
		return DefaultTable, nil
	}
	if !identifier.MatchString(table) {
		return "", fmt.Errorf("barrier: %q is no name of a table", table)
	}
	return table, nil
}

// rolledBackByServer reports whether the server ended the transaction for the
// sake of another, so that it may be tried again.
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
