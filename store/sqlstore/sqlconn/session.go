// Package sqlconn has what a store on an SQL server needs of its connections and what
// does not depend on sagas: URLs, connections whose round trips are counted,
// transactions that end with the call, queries, and the errors of both clients.
package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"time"
)

// Session is a pool of connections, or one of them.
type Session interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// Query returns all rows of a query. into returns where the columns of a row go.
func Query[T any](ctx context.Context, db Session, text string, args []any, into func(*T) []any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r T
		if err := rows.Scan(into(&r)...); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// QueryStrings returns all rows of a query of one column.
func QueryStrings(ctx context.Context, db Session, text string, args ...any) ([]string, error) {
	return Query(ctx, db, text, args, func(s *string) []any { return []any{s} })
}

// QueryValues returns the rows of a query of names and values.
func QueryValues(ctx context.Context, db Session, text string) (map[string]string, error) {
	type value struct{ name, value string }
	rows, err := Query(ctx, db, text, nil, func(v *value) []any { return []any{&v.name, &v.value} })
	values := make(map[string]string, len(rows))
	for _, v := range rows {
		values[v.name] = v.value
	}
	return values, err
}

// Affected returns how many rows a statement has changed.
func Affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// OnConnection runs f on one connection.
func OnConnection(ctx context.Context, db *sql.DB, f func(conn *sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(conn)
}

// InTransaction runs f in a transaction. A sql.Tx would not do: its Commit and
// Rollback have no context, and the client of MySQL would wait for their answers
// beyond the end of the call.
func InTransaction(ctx context.Context, db *sql.DB, f func(tx Session) error) error {
	return OnConnection(ctx, db, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
			return err
		}
		committed := false
		defer func() { // also if f panics
			if !committed {
				_ = RollBack(ctx, conn)
			}
		}()
		if err := f(conn); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "COMMIT")
		committed = err == nil
		return err
	})
}

// RollBack ends a transaction. If it cannot, perhaps since ctx has ended, it closes the
// connection: nobody else may use one with an open transaction.
func RollBack(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "ROLLBACK")
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// Persist runs f until it does not lose against others, but tries times at most.
func Persist(ctx context.Context, tries int, lost func(error) bool, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == tries || !lost(err) {
			return err
		}
		// The winner is about to commit. Losers do not all return at once.
		select {
		case <-time.After(rand.N(time.Duration(try) * 2 * time.Millisecond)):
		case <-ctx.Done():
			return err
		}
	}
}
