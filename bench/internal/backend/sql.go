package backend

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"

	"sagabench/bench/internal/sample"
)

// sqlEngine is what the engines of SQL servers have in common: one connection, and the
// server's process. The connection does not outlive the server: while it lasts, the
// counters are the same ones.
type sqlEngine struct {
	pool  *sql.DB
	conn  *sql.Conn
	asked int64 // statements of the sampler

	schema string
	pid    int   // 0: see noPID
	noPID  error // why there is none
}

// connect takes over the pool. A server without a known process is sampled without its CPU.
func connect(ctx context.Context, pool *sql.DB, server Server, port int, programs ...string) (*sqlEngine, error) {
	dial, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := pool.Conn(dial)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	s := &sqlEngine{pool: pool, conn: conn, schema: server.Schema, pid: server.PID}
	switch {
	case s.pid != 0:
	case !server.Local:
		s.noPID = errors.New("it runs on another machine")
	default:
		s.pid, s.noPID = listener(ctx, port, programs...)
	}
	return s, nil
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
type sqlSampler struct {
	sampler
	noPID error
}

func (s *sqlSampler) AddTo(u *sample.Usage) {
	if s.noPID != nil {
		u.Fail("store CPU", s.noPID)
	}
	s.sampler.AddTo(u)
}

// cpuTries bounds how often the processes are read again because one of them ended
// meanwhile.
const cpuTries = 20

// cpu adds up the process and those that it started, user and system: PostgreSQL has one
// for each connection. What ended ones have used, the kernel has added to their parent.
func (s *sqlEngine) cpu(ctx context.Context) (*float64, error) {
	if s.pid == 0 {
		return nil, nil
	}
	for range cpuTries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sum, endedBefore, err := processCPU(s.pid)
		if err != nil {
			return nil, fmt.Errorf("CPU: process %d: %w", s.pid, err)
		}
		whole := true
		for _, child := range childrenOf(s.pid) {
			used, _, err := processCPU(child)
			whole = whole && err == nil // else it has just ended
			sum += used
		}
		if _, ended, err := processCPU(s.pid); err == nil && whole && ended == endedBefore {
			return &sum, nil
		}
	}
	return nil, fmt.Errorf("CPU: process %d: its processes come and go too fast to be counted", s.pid)
}

// processCPU returns the seconds that a process has used, with its children that have
// ended, and the part of the latter.
func processCPU(pid int) (all, ended float64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	stat, err := p.Stat()
	const ticksPerSecond = 100 // the kernel's USER_HZ wherever Go runs on Linux
	ended = float64(stat.CUTime+stat.CSTime) / ticksPerSecond
	return stat.CPUTime() + ended, ended, err
}

// childrenOf lists the processes that pid has started and that have not ended.
func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails only on a bad pattern
	for _, task := range tasks {
		list, _ := os.ReadFile(task) // the thread may be gone
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

var errNoListener = errors.New("no process that we may look at listens; run as root, or as the server's user")

// listener returns the process that listens on a TCP port of this machine. If processes
// that it started listen, too, it is the first of them. Its program must be one of those
// named: what forwards to a server is not the server.
func listener(ctx context.Context, port int, programs ...string) (pid int, err error) {
	connections, err := net.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return 0, fmt.Errorf("look for the process that listens on port %d: %w", port, err)
	}
	var pids []int32
	for _, c := range connections {
		if c.Status == "LISTEN" && int(c.Laddr.Port) == port && c.Pid > 0 {
			pids = append(pids, c.Pid)
		}
	}
	err = errNoListener
	for _, candidate := range pids {
		p, failed := process.NewProcessWithContext(ctx, candidate)
		if failed != nil {
			continue
		}
		parent, _ := p.PpidWithContext(ctx)
		if slices.Contains(pids, parent) {
			continue
		}
		name, _ := p.NameWithContext(ctx)
		if slices.Contains(programs, name) {
			return int(candidate), nil
		}
		err = fmt.Errorf("%q listens, which only forwards", name)
	}
	return 0, fmt.Errorf("port %d: %w", port, err)
}
