package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// mysqlDialect is MariaDB and MySQL.
type mysqlDialect struct {
	client     *mysql.Config
	version    string
	mariaDB    bool
	skipLocked bool        // the server has SKIP LOCKED
	hasNoWait  bool        // the server has NOWAIT; MySQL before 8.0 waits for each lock
	galera     bool        // the server is a node of Galera: see galera.go
	flushRow   string      // the row of saga_flush that this store changes
	unflushed  atomic.Bool // see showsUnflushed
}

// minPacket fits a statement with the longest body, escaped.
const minPacket = 2*store.MaxBodyBytes + 1<<20

func (d *mysqlDialect) connect(ctx context.Context, cfg Config, dial sqlconn.Dialer) (*sql.DB, error) {
	client := d.client
	client.Timeout = cfg.Timeout
	client.Logger = &mysql.NopLogger{}
	// Statements differ each time: preparing them would take a second round trip.
	client.InterpolateParams = true
	client.MultiStatements = true
	// Only changed rows count. A row that needs no change is read again, and that read
	// waits for the disk: the client that changed it may still wait as well.
	client.ClientFoundRows = false
	client.DialFunc = dial
	// Text and its columns are ASCII; bodies and notes are bytes. With utf8mb4 the
	// server would convert each gid and mark.
	client.Collation = "ascii_bin"
	if err := d.prepareServer(ctx, cfg); err != nil {
		return nil, err
	}
	isolation := "transaction_isolation"
	if d.mariaDB {
		isolation = "tx_isolation"
	}
	client.DBName = cfg.Schema
	// A session keeps its locks no longer than this if its client vanishes between two
	// statements, while it sends one, or while it receives an answer.
	silence := strconv.Itoa(int(cfg.silence().Seconds()))
	client.Params = map[string]string{
		// A locking read sees the latest version of a row, and locks no gaps between rows.
		isolation:                  "'READ-COMMITTED'",
		"innodb_lock_wait_timeout": strconv.Itoa(int(lockWait.Seconds())),
		"lock_wait_timeout":        strconv.Itoa(int(cfg.Timeout.Seconds())), // for tables
		"wait_timeout":             silence,
		"net_read_timeout":         silence,
		"net_write_timeout":        silence,
		// No value is truncated, and a backslash escapes.
		"sql_mode": "'STRICT_ALL_TABLES'",
	}
	if d.galera {
		maps.Copy(client.Params, sqlconn.GaleraSession)
	}
	connector, err := mysql.NewConnector(client)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(sqlconn.BoundedConnector{Connector: connector, Timeout: cfg.Timeout})
	// Close idle connections before the server does. The pool checks for them once in
	// that time, or once a second if that is longer.
	pool.SetConnMaxIdleTime(cfg.silence() / 3)
	pool.SetMaxOpenConns(cfg.Conns)
	pool.SetMaxIdleConns(cfg.Conns)
	return pool, nil
}

// prepareServer checks the server's version and settings, and creates the database.
func (d *mysqlDialect) prepareServer(ctx context.Context, cfg Config) error {
	connector, err := mysql.NewConnector(d.client)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var packet, existing int64
	var readOnly string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@max_allowed_packet, @@read_only").Scan(&d.version, &packet, &readOnly); err != nil {
		return err
	}
	if err := d.checkVersion(); err != nil {
		return err
	}
	if readOnly != "0" && readOnly != "OFF" {
		return fmt.Errorf("%w: read_only is on, so it does not take writes: is it a replica? Give the primary", store.ErrUnsafe)
	}
	if packet < minPacket {
		return fmt.Errorf("max_allowed_packet is %d: the longest saga needs %d", packet, minPacket)
	}
	if err := d.findGalera(ctx, db); err != nil {
		return err
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", cfg.Schema).Scan(&existing)
	if err == nil && existing == 0 {
		if cfg.MustExist {
			return fmt.Errorf("database %s: %w", cfg.Schema, store.ErrAbsent)
		}
		_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+cfg.Schema)
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", cfg.Schema, err)
	}
	return nil
}

// checkVersion refuses servers that are too old, and sets what the server has.
func (d *mysqlDialect) checkVersion() error {
	d.mariaDB = strings.Contains(d.version, "MariaDB")
	var major, minor int
	// MariaDB may put 5.5.5- before its version, for old clients.
	if _, err := fmt.Sscanf(strings.TrimPrefix(d.version, "5.5.5-"), "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("the server's version %q cannot be read", d.version)
	}
	number := 1000*major + minor
	if d.mariaDB && number < 10_003 || !d.mariaDB && number < 5_007 {
		return fmt.Errorf("the server is version %s: want MariaDB 10.3 or MySQL 5.7, or later", d.version)
	}
	// TiDB says that it is MySQL 8. It takes SKIP LOCKED, and then locks nothing
	// (pingcap/tidb issue 69720): two coordinators would claim the same sagas.
	tiDB := strings.Contains(d.version, "TiDB")
	d.skipLocked = d.mariaDB && number >= 10_006 || !d.mariaDB && number >= 8_000 && !tiDB
	d.hasNoWait = d.mariaDB || number >= 8_000
	return nil
}

func (d *mysqlDialect) migrating(ctx context.Context, db *sql.DB, cfg Config, f func(tx sqlconn.Session) error) error {
	if d.galera {
		return d.migrateOnGalera(ctx, db, f)
	}
	return sqlconn.OnConnection(ctx, db, func(conn *sql.Conn) (err error) {
		var locked int
		name := "saga_migration." + cfg.Schema
		if err := conn.QueryRowContext(ctx, "SELECT COALESCE(GET_LOCK(?, ?), 0)", name, int(openTimeout.Seconds())).Scan(&locked); err != nil {
			return err
		}
		if locked != 1 {
			return errors.New("another process has been preparing it for too long")
		}
		defer func() {
			_, failed := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", name)
			err = errors.Join(err, failed)
		}()
		return f(conn)
	})
}

func (d *mysqlDialect) migrations() [][]string {
	const ascii = "CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
	return [][]string{{
		`CREATE TABLE IF NOT EXISTS saga (
			gid VARCHAR(` + strconv.Itoa(store.MaxGIDBytes) + `) ` + ascii + ` PRIMARY KEY,
			status CHAR(1) ` + ascii + `,
			done BOOLEAN NOT NULL,
			epoch INT UNSIGNED NOT NULL,
			created BIGINT NOT NULL,
			updated BIGINT NOT NULL,
			due BIGINT NOT NULL,
			owner VARCHAR(` + strconv.Itoa(store.MaxOwnerBytes) + `) ` + ascii + `,
			marks VARCHAR(` + strconv.Itoa(2*store.MaxSteps) + `) ` + ascii + `,
			note MEDIUMBLOB,
			body MEDIUMBLOB NOT NULL,
			KEY saga_due (done, due)
		) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
	}, {
		"CREATE TABLE IF NOT EXISTS saga_flush (id TINYINT PRIMARY KEY, n BIGINT NOT NULL) ENGINE=InnoDB",
	}}
}

// dropSchema checks first: MySQL drops a database with everything in it.
func (d *mysqlDialect) dropSchema(ctx context.Context, db *sql.DB, schema string) error {
	var others int64
	err := db.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?) + "+
		"(SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ?) + "+
		"(SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ?)", schema, schema, schema).Scan(&others)
	if err != nil || others > 0 {
		return err
	}
	_, err = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+schema)
	return err
}

// now avoids UNIX_TIMESTAMP, which depends on the session's time zone.
func (d *mysqlDialect) now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
}

func (d *mysqlDialect) table(index string) string {
	if index == indexGID {
		index = "PRIMARY"
	}
	// Without it the server may read all of a small table, and wait for rows that the
	// query does not need.
	return "saga FORCE INDEX (" + index + ")"
}

func (d *mysqlDialect) bind(text string) string { return text }

func (d *mysqlDialect) gidIn(gids []string) (condition string, args []any) {
	return "gid IN " + listOf(gids), nil
}

// listOf writes gids, which were checked and contain no quotes, as an SQL list.
func listOf(gids []string) string { return "('" + strings.Join(gids, "','") + "')" }

func (d *mysqlDialect) skipsLocked() bool { return d.skipLocked }

// sweep skips locked rows only after it has met one: DELETE has no SKIP LOCKED.
func (d *mysqlDialect) sweep(ctx context.Context, db *sql.DB, limit int) (int64, error) {
	expired := "done = true AND due <= " + d.now()
	dropped, err := sqlconn.Affected(db.ExecContext(ctx, "DELETE FROM saga WHERE "+expired+" ORDER BY due LIMIT ?", limit))
	if !d.skipLocked || !d.isLocked(err) {
		return dropped, err
	}
	gids, err := sqlconn.QueryStrings(ctx, db, "SELECT gid FROM "+d.table(indexDue)+" WHERE "+expired+" ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED", limit)
	if err != nil || len(gids) == 0 {
		return 0, err
	}
	return sqlconn.Affected(db.ExecContext(ctx, "DELETE FROM saga WHERE gid IN "+listOf(gids)+" AND "+expired))
}

func (d *mysqlDialect) showsUnflushed() bool { return d.unflushed.Load() }

// flush commits a change: a commit returns once the log is on disk up to it. Reading
// how far the log is on disk (SHOW STATUS) costs the server more.
func (d *mysqlDialect) flush(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "INSERT INTO saga_flush (id, n) VALUES ("+d.flushRow+", 0) ON DUPLICATE KEY UPDATE n = n + 1")
	return err
}

func (d *mysqlDialect) isDeadlock(err error) bool {
	const deadlock = 1213
	return sqlconn.HasNumber(err, deadlock)
}

func (d *mysqlDialect) isLocked(err error) bool {
	const lockWaitTimeout, lockNoWait = 1205, 3572 // MariaDB uses the first for both
	return sqlconn.HasNumber(err, lockWaitTimeout) || sqlconn.HasNumber(err, lockNoWait)
}
