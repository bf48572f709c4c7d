package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"sagabench/bench/internal/sample"
	"sagabench/internal/tlsfiles"
)

// mysqlEngine asks a MariaDB or MySQL. Its counters are always up to date.
type mysqlEngine struct {
	*sqlEngine
	traffic traffic
	version string
}

func openMySQL(ctx context.Context, server Server) (sample.Store, error) {
	text, files := tlsfiles.CutURL(server.URL)
	u, err := url.Parse(text)
	if err != nil {
		// The error quotes the URL, and with it the password.
		return nil, errors.New("the URL is not one of a MySQL (mysql://USER:PASSWORD@HOST:PORT)")
	}
	port := 3306
	if u.Port() != "" {
		port, _ = strconv.Atoi(u.Port()) // url.Parse accepts digits only
	}
	m := &mysqlEngine{}
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
	cfg.DialFunc = m.traffic.counting((&net.Dialer{}).DialContext)
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	if m.sqlEngine, err = connect(ctx, sql.OpenDB(connector), server, port, "mariadbd", "mysqld"); err != nil {
		return nil, err
	}
	if err := m.row(ctx, []any{&m.version}, "SELECT VERSION()"); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return &sqlSampler{newSampler(ctx, m, m.process)}, nil
}

func (m *mysqlEngine) counters(ctx context.Context) (*counters, error) {
	got := m.traffic.got.Load()
	status, err := m.values(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN "+
		"('Bytes_received', 'Bytes_sent', 'Questions', 'Handler_delete', 'Innodb_data_fsyncs', 'Innodb_row_lock_time', 'Syncs', "+
		"'Innodb_data_written', 'Innodb_os_log_written', 'Binlog_bytes_written', 'Innodb_buffer_pool_bytes_dirty', "+
		"'Slaves_connected', 'Rpl_semi_sync_source_clients', 'Rpl_semi_sync_master_clients')")
	if err != nil {
		return nil, err
	}
	// The server counts the bytes of a statement when it reads it and those of an answer
	// when it has written it: this one's are in the former only.
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
	c.values["store_bytes_in"] -= float64(sent)
	c.values["store_bytes_out"] -= float64(got)
	c.values["store_calls"] -= float64(asked)
	if c.values[keyMemory], err = m.size(ctx); err != nil {
		c.unknown[keyMemory] = err
	}
	return c, nil
}

// mysqlExtent is how large the table must be, and how much it must grow, for the size of
// an extent, or a few, not to matter.
const mysqlExtent = 8 << 20

const page = 4096 // of the kernel's cache

func parseStatus(status, settings map[string]string) (*counters, error) {
	n := numbers{fields: status}
	c := &counters{
		deleted: int64(n.whole("Handler_delete")), // rows
		extent:  mysqlExtent,
		unknown: map[string]error{},
		values: map[string]float64{
			"store_bytes_in":  n.whole("Bytes_received"),
			"store_bytes_out": n.whole("Bytes_sent"),
			"store_calls":     n.whole("Questions"),
			// By InnoDB, of its log and its tables, and in MariaDB by the rest of the
			// server, mostly of the binlog.
			keyFsyncs:          n.whole("Innodb_data_fsyncs") + n.optional("Syncs"),
			"store_lock_waits": n.whole("Innodb_row_lock_time") / 1000, // from ms
			keyWritten:         n.optional("Innodb_data_written") + n.optional("Innodb_os_log_written") + n.optional("Binlog_bytes_written"),
		},
	}
	most := c.values[keyWritten] + page*c.values[keyFsyncs] // a page that is not full is written again
	c.mostWritten = &most
	dirty := n.optional("Innodb_buffer_pool_bytes_dirty")
	c.debt = &dirty
	if n.optional("Slaves_connected")+n.optional("Rpl_semi_sync_source_clients")+n.optional("Rpl_semi_sync_master_clients") > 0 {
		c.unknown[keyBytesOut] = errors.New("it counts the binlog that it sends to replicas, too")
	}
	switch {
	case settings["innodb_flush_method"] == "O_DSYNC" || settings["innodb_log_file_write_through"] == "ON":
		c.unknown[keyFsyncs] = errors.New("the log is synced as it is written, and nobody counts (innodb_flush_method, innodb_log_file_write_through)")
	case settings["log_bin"] == "ON" && status["Syncs"] == "":
		c.unknown[keyFsyncs] = errors.New("this server does not count those of its binlog")
	}
	return c, n.err
}

// size returns the bytes of the table and its indexes: extents of 1 MiB, after the first.
func (m *mysqlEngine) size(ctx context.Context) (size float64, err error) {
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
		err = errors.New("the server does not report the size of the table")
	}
	return size, err
}

func (m *mysqlEngine) connections(ctx context.Context) (open, most int, err error) {
	status, err := m.values(ctx, "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'")
	if err != nil {
		return 0, 0, err
	}
	n := numbers{fields: status}
	open = int(n.whole("Threads_connected"))
	err = errors.Join(n.err, m.row(ctx, []any{&most}, "SELECT @@GLOBAL.max_connections"))
	return open, most, err
}
