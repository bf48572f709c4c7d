package probe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// sqlServer is what the probes of SQL servers have in common: one connection of
// the probe's own, and the server's processes. The connection does not outlive the
// server: while it lasts, the counters are those that they were.
type sqlServer struct {
	pool    *sql.DB
	conn    *sql.Conn
	timeout time.Duration
	asked   int64 // statements, by the probe

	family   *family
	noFamily error // why there is none
	cpuBegan *float64
	cpuEnded *float64
}

// connectSQL takes over the pool.
func connectSQL(ctx context.Context, pool *sql.DB, timeout time.Duration) (*sqlServer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &sqlServer{pool: pool, conn: conn, timeout: timeout}, nil
}

func (s *sqlServer) close() error { return errors.Join(s.conn.Close(), s.pool.Close()) }

// values runs a query for names and values.
func (s *sqlServer) values(ctx context.Context, query string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
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
func (s *sqlServer) row(ctx context.Context, into []any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.asked++
	return lost(s.conn.QueryRowContext(ctx, query, args...).Scan(into...))
}

// lost says what it means that the connection is gone.
func lost(err error) error {
	for _, gone := range []error{sql.ErrConnDone, driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, gone) {
			return errRestarted
		}
	}
	return err
}

// findFamily looks for the server's processes. Not to find them is nothing to stop
// for.
func (s *sqlServer) findFamily(ctx context.Context, server Server, port int, programs ...string) {
	pid := server.PID
	switch {
	case pid != 0:
	case !server.Here:
		s.noFamily = errors.New("it runs on another machine")
	default:
		pid, s.noFamily = listener(ctx, port, programs...)
	}
	if pid != 0 {
		s.family = &family{pid}
	}
}

func (s *sqlServer) cpu(ctx context.Context) (seconds *float64, err error) {
	if s.family == nil {
		return nil, nil
	}
	if seconds, err = s.family.cpuSeconds(ctx); err != nil {
		return nil, fmt.Errorf("CPU: %w", err)
	}
	return seconds, nil
}

// addCPU adds what the processes used, or why it is not known.
func (s *sqlServer) addCPU(u *storeUse) {
	if s.noFamily != nil {
		u.fail("CPU", s.noFamily)
	}
	u.cpu = difference(s.cpuBegan, s.cpuEnded)
}

// traffic is what went over the probe's own connection, in bytes.
type traffic struct{ sent, got atomic.Int64 }

// countingConn counts its bytes.
type countingConn struct {
	net.Conn
	traffic *traffic
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.traffic.got.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.sent.Add(int64(n))
	return n, err
}
