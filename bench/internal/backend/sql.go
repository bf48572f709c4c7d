package backend

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/go-sql-driver/mysql"

	"sagabench/bench/internal/sample"
)

// sqlEngine is what the engines of SQL servers have in common: one connection, and the
// server's process. The connection does not outlive the server: while it lasts, the
// counters are the same ones.
type sqlEngine struct {
	pool  *sql.DB
	conn  *sql.Conn
	asked int64 // statements of the sampler

	schema  string
	process serverProcess
}

// connect takes over the pool. A server without a known process is sampled without its CPU.
func connect(ctx context.Context, pool *sql.DB, server Server, port int, programs ...string) (*sqlEngine, error) {
	dial, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := pool.Conn(dial)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &sqlEngine{
		pool: pool, conn: conn, schema: server.Schema,
		process: findProcess(ctx, server, port, programs...),
	}, nil
}

func (s *sqlEngine) close() error { return errors.Join(s.conn.Close(), s.pool.Close()) }

// values runs a query for names and values.
func (s *sqlEngine) values(ctx context.Context, query string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.asked++
	rows, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, lost(err)
	}
	defer rows.Close()
	values := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, lost(rows.Err())
}

// row runs a query for one row.
func (s *sqlEngine) row(ctx context.Context, into []any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.asked++
	return lost(s.conn.QueryRowContext(ctx, query, args...).Scan(into...))
}

// lost returns errRestarted for errors that mean that the connection is gone.
func lost(err error) error {
	for _, gone := range []error{sql.ErrConnDone, driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, gone) {
			return errRestarted
		}
	}
	return err
}

// sqlSampler adds why the CPU of a server is unknown.
type sqlSampler struct{ sampler }

func (s *sqlSampler) AddTo(u *sample.Usage) {
	if s.process.missing != nil {
		u.Fail("store CPU", s.process.missing)
	}
	s.sampler.AddTo(u)
}

func (s *sqlEngine) cpu(ctx context.Context) (*float64, error) {
	if s.process.pid == 0 {
		return nil, nil
	}
	return s.process.sum(ctx, cpuOf)
}
