package probe

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"sagabench/internal/tlsfiles"
)

// mysqlServer is a MariaDB or MySQL. What it counts is up to date at every look.
type mysqlServer struct {
	*sqlServer
	traffic traffic
	schema  string
	version string

	before, after *mysqlCounts
}

// mysqlCounts is what the server counted since it was started, without what the
// probe itself sent, got and asked.
type mysqlCounts struct {
	bytesIn, bytesOut int64
	statements        int64
	deleted           int64 // rows
	fsyncs            int64
	lockTime          int64 // ms that transactions waited for a row's lock
	noFsyncs          error // why they are not known
	size              int64 // of the tables, in bytes
	noSize            error
}

func newMySQLServer(ctx context.Context, server Server, timeout time.Duration) (*mysqlServer, error) {
	text, files := tlsfiles.CutURL(server.URL)
	u, err := url.Parse(text)
	if err != nil {
		// The error quotes the URL, and with it the password.
		return nil, errors.New("the URL is not one of a MySQL (mysql://USER:PASSWORD@HOST:PORT)")
	}
	port := 3306
	if u.Port() != "" {
		port, _ = strconv.Atoi(u.Port()) // a URL's port is of digits
	}
	m := &mysqlServer{schema: server.Schema}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net = "tcp"
	cfg.Addr = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	cfg.TLSConfig = u.Query().Get("tls")
	if cfg.TLS, err = files.MySQL(cfg.TLSConfig); err != nil {
		return nil, err
	}
	cfg.InterpolateParams = true
	cfg.Logger = &mysql.NopLogger{}
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countingConn{c, &m.traffic}, nil
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	if m.sqlServer, err = connectSQL(ctx, sql.OpenDB(connector), timeout); err != nil {
		return nil, err
	}
	if err := m.row(ctx, []any{&m.version}, "SELECT VERSION()"); err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.findFamily(ctx, server, port, "mariadbd", "mysqld")
	return m, nil
}

func (m *mysqlServer) begin(ctx context.Context) (err error) {
	if m.before, err = m.look(ctx); err != nil {
		return err
	}
	m.cpuBegan, err = m.cpu(ctx)
	return err
}

func (m *mysqlServer) end(ctx context.Context) (err error) {
	var noCPU error
	m.cpuEnded, noCPU = m.cpu(ctx)
	if m.after, err = m.look(ctx); err != nil {
		return err
	}
	return noCPU
}

func (m *mysqlServer) look(ctx context.Context) (*mysqlCounts, error) {
	got := m.traffic.got.Load()
	status, err := m.values(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN "+
		"('Bytes_received', 'Bytes_sent', 'Questions', 'Handler_delete', 'Innodb_data_fsyncs', 'Innodb_row_lock_time', 'Syncs')")
	if err != nil {
		return nil, err
	}
	// The server counts the bytes of a statement when it reads it and those of an
	// answer when it has written it: this one's are in the former only.
	sent, asked := m.traffic.sent.Load(), m.asked
	settings, err := m.values(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN "+
		"('innodb_flush_method', 'innodb_log_file_write_through', 'log_bin')")
	if err != nil {
		return nil, err
	}
	c, err := parseStatus(status, settings)
	if err != nil {
		return nil, fmt.Errorf("read SHOW GLOBAL STATUS: %w", err)
	}
	c.bytesIn -= sent
	c.bytesOut -= got
	c.statements -= asked
	c.size, c.noSize = m.size(ctx)
	return c, nil
}

func parseStatus(status, settings map[string]string) (*mysqlCounts, error) {
	n := numbers{fields: status}
	c := &mysqlCounts{
		bytesIn:    n.whole("Bytes_received"),
		bytesOut:   n.whole("Bytes_sent"),
		statements: n.whole("Questions"),
		deleted:    n.whole("Handler_delete"),
		// By InnoDB, of its log and its tables; and of MariaDB by the rest of the
		// server, of the binlog above all.
		fsyncs:   n.whole("Innodb_data_fsyncs") + n.optional("Syncs"),
		lockTime: n.whole("Innodb_row_lock_time"),
	}
	switch {
	case settings["innodb_flush_method"] == "O_DSYNC" || settings["innodb_log_file_write_through"] == "ON":
		c.noFsyncs = errors.New("the log is synced as it is written, and nobody counts (innodb_flush_method, innodb_log_file_write_through)")
	case settings["log_bin"] == "ON" && status["Syncs"] == "":
		c.noFsyncs = errors.New("this server does not count those of its binlog")
	}
	return c, n.err
}

// size is what the table and its indexes take up: extents of 1 MiB, once they are
// past the first.
func (m *mysqlServer) size(ctx context.Context) (size int64, err error) {
	tablespaces := "innodb_sys_tablespaces"
	if !strings.Contains(m.version, "MariaDB") && !strings.HasPrefix(m.version, "5.") {
		tablespaces = "innodb_tablespaces"
		// It would answer with what it knew a day ago.
		if _, err := m.conn.ExecContext(ctx, "SET SESSION information_schema_stats_expiry = 0"); err != nil {
			return 0, err
		}
		m.asked++
	}
	err = m.row(ctx, []any{&size}, "SELECT CAST(s.file_size - t.data_free AS SIGNED) FROM information_schema."+tablespaces+" s "+
		"JOIN information_schema.tables t ON t.table_schema = ? AND t.table_name = 'saga' WHERE s.name = CONCAT(?, '/saga')",
		m.schema, m.schema)
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("the server does not say what the table takes up")
	}
	return size, err
}

// How large the table has to be, and by how much it has to grow, for the size of
// an extent, or a few, not to matter.
const (
	leastTable  = 8 << 20
	leastGrowth = 8 << 20
)

func (m *mysqlServer) used() storeUse {
	var u storeUse
	m.addCPU(&u)
	b, a := m.before, m.after
	if b == nil || a == nil {
		return u
	}
	u.bytesIn = u.grown("bytes received", b.bytesIn, a.bytesIn)
	u.bytesOut = u.grown("bytes sent", b.bytesOut, a.bytesOut)
	u.calls = u.grown("statements", b.statements, a.statements)
	if a.noFsyncs != nil {
		u.fail("fsyncs", a.noFsyncs)
	} else if n := u.grown("fsyncs", b.fsyncs, a.fsyncs); n != nil {
		fsyncs := float64(*n)
		u.fsyncs = &fsyncs
	}
	if ms := u.grown("waits for locks", b.lockTime, a.lockTime); ms != nil {
		seconds := float64(*ms) / 1000
		u.lockTime = &seconds
	}
	switch noSize := cmp.Or(b.noSize, a.noSize); {
	case noSize != nil:
		u.fail("size", noSize)
	case a.deleted != b.deleted:
		u.fail("size", errDeleted)
	case b.size < leastTable || a.size-b.size < leastGrowth:
		u.fail("size", fmt.Errorf("the table went from %d to %d bytes: too little to tell, InnoDB takes up some MiB at once", b.size, a.size))
	default:
		u.memory = u.grown("size", b.size, a.size)
	}
	return u
}
