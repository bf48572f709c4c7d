package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// session is a pool of connections, or one of them.
type session interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// exec runs a statement whose parameters are written as ?, whatever the server.
func (s *Store) exec(ctx context.Context, db session, text string, args ...any) error {
	_, err := db.ExecContext(ctx, s.dialect.bind(text), args...)
	return err
}

// rows runs a query of the columns that Store.columns lists. Its parameters are
// written as ?.
func (s *Store) rows(ctx context.Context, db session, text string, args ...any) ([]row, error) {
	return query(ctx, db, s.dialect.bind(text), args, func(r *row) []any {
		return []any{
			&r.GID, &r.Status, &r.Done, &r.Epoch, &r.Owner, &r.Marks, &r.Created, &r.Updated, &r.Due,
			&r.Note, &r.Body, &r.Bytes, &r.Now,
		}
	})
}

// query returns all rows of a query. into returns where the columns of a row go.
func query[T any](ctx context.Context, db session, text string, args []any, into func(*T) []any) (all []T, err error) {
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

// queryStrings returns all rows of a query of one column.
func queryStrings(ctx context.Context, db session, text string, args ...any) ([]string, error) {
	return query(ctx, db, text, args, func(s *string) []any { return []any{s} })
}

// affected returns how many rows a statement has changed.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// onConnection runs f on one connection.
func onConnection(ctx context.Context, db *sql.DB, f func(conn *sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(conn)
}

// inTransaction runs f in a transaction. A sql.Tx would not do: its Commit and
// Rollback have no context, and the client of MySQL would wait for their answers
// beyond the end of the call.
func inTransaction(ctx context.Context, db *sql.DB, f func(tx session) error) error {
	return onConnection(ctx, db, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
			return err
		}
		err := f(conn)
		if err == nil {
			_, err = conn.ExecContext(ctx, "COMMIT")
		}
		if err != nil {
			_ = rollBack(ctx, conn)
		}
		return err
	})
}

// rollBack ends a transaction. If it cannot, perhaps since ctx has ended, it closes the
// connection: nobody else may use one with an open transaction.
func rollBack(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "ROLLBACK")
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}
