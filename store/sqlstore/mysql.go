package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"sagabench/store"
)

// mysqlDialect is MariaDB and MySQL.
type mysqlDialect struct {
	client     *mysql.Config
	database   string // of the URL; empty: the schema of the configuration
	version    string
	mariaDB    bool
	skipLocked bool        // has SKIP LOCKED
	noWait     bool        // has NOWAIT
	unflushed  atomic.Bool // see showsUnflushed
}

// minPacket is for the longest body, escaped, with the statement around it.
const minPacket = 2*store.MaxBodyBytes + 1<<20

func (d *mysqlDialect) connect(ctx context.Context, cfg Config, dial dialer) (*gorm.DB, error) {
	client := d.client
	client.Timeout = cfg.Timeout
	client.Logger = &mysql.NopLogger{}
	// One round trip for a statement that is different each time, where preparing
	// it would be two.
	client.InterpolateParams = true
	client.MultiStatements = true
	// A row counts if it was changed. One that is as it should be already is looked at
	// again: who has changed it may still be waiting for the disk.
	client.ClientFoundRows = false
	client.DialFunc = dial
	// All text is ASCII, as its columns are; bodies and notes are bytes. In utf8mb4
	// the server would convert each gid and mark.
	client.Collation = "ascii_bin"
	if d.database == "" {
		d.database = cfg.Schema
	}
	if err := d.introduce(ctx, cfg, client); err != nil {
		return nil, err
	}
	isolation := "transaction_isolation"
	if d.mariaDB {
		isolation = "tx_isolation"
	}
	client.DBName = d.database
	// No session may keep its locks longer than this when its client has vanished
	// between two statements, in one, or as it takes an answer.
	silence := strconv.Itoa(int(cfg.sessionBound().Seconds()))
	client.Params = map[string]string{
		// A row is read as it is once it is locked, and the gaps between rows are
		// not locked.
		isolation:                  "'READ-COMMITTED'",
		"innodb_lock_wait_timeout": strconv.Itoa(int(lockWait.Seconds())),
		"lock_wait_timeout":        strconv.Itoa(int(cfg.Timeout.Seconds())), // for tables
		"wait_timeout":             silence,
		"net_read_timeout":         silence,
		"net_write_timeout":        silence,
		// Nothing is cut off, and a backslash escapes.
		"sql_mode": "'STRICT_ALL_TABLES'",
	}
	connector, err := mysql.NewConnector(client)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(boundedConnector{connector, cfg.Timeout})
	// Before the server ends an idle session, we do. The pool looks for them once in
	// that time, or once a second if that is longer.
	pool.SetConnMaxIdleTime(cfg.sessionBound() / 3)
	return openGorm(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}), pool, cfg)
}

// boundedConnector gives up on a server that accepts a connection and then says
// nothing. The client bounds the dialling only, and the pool may connect on
// nobody's behalf, one connection at a time: it would never get another.
type boundedConnector struct {
	driver.Connector
	timeout time.Duration
}

func (c boundedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.Connector.Connect(ctx)
}

// introduce asks the server who it is, and makes the database.
func (d *mysqlDialect) introduce(ctx context.Context, cfg Config, client *mysql.Config) error {
	connector, err := mysql.NewConnector(client)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var packet, there int64
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@max_allowed_packet").Scan(&d.version, &packet); err != nil {
		return err
	}
	if err := d.judgeVersion(); err != nil {
		return err
	}
	if packet < minPacket {
		return fmt.Errorf("max_allowed_packet is %d: the longest saga needs %d", packet, minPacket)
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", d.database).Scan(&there)
	if err == nil && there == 0 {
		if cfg.MustExist {
			return fmt.Errorf("database %s: %w", d.database, store.ErrAbsent)
		}
		_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+d.database)
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", d.database, err)
	}
	return nil
}

// judgeVersion refuses servers that are too old, and looks up what others can.
func (d *mysqlDialect) judgeVersion() error {
	d.mariaDB = strings.Contains(d.version, "MariaDB")
	var major, minor int
	// MariaDB may put 5.5.5- before its version, for old clients' sake.
	if _, err := fmt.Sscanf(strings.TrimPrefix(d.version, "5.5.5-"), "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("the server's version %q cannot be read", d.version)
	}
	number := 1000*major + minor
	if d.mariaDB && number < 10_003 || !d.mariaDB && number < 5_007 {
		return fmt.Errorf("the server is version %s: want MariaDB 10.3 or MySQL 5.7, or later", d.version)
	}
	d.skipLocked = d.mariaDB && number >= 10_006 || !d.mariaDB && number >= 8_000
	d.noWait = d.mariaDB || number >= 8_000
	return nil
}

func (d *mysqlDialect) migrating(db *gorm.DB, cfg Config, f func(tx *gorm.DB) error) error {
	return db.Connection(func(tx *gorm.DB) (err error) {
		var locked int
		name := "saga_migration." + d.database
		if err := tx.Raw("SELECT COALESCE(GET_LOCK(?, ?), 0)", name, int(openTimeout.Seconds())).Scan(&locked).Error; err != nil {
			return err
		}
		if locked != 1 {
			return errors.New("another process has been preparing it for too long")
		}
		defer func() { err = errors.Join(err, tx.Exec("DO RELEASE_LOCK(?)", name).Error) }()
		return f(tx)
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

// now does without UNIX_TIMESTAMP, which asks the session's time zone.
func (d *mysqlDialect) now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
}

func (d *mysqlDialect) by(index string) string {
	if index == indexGID {
		index = "PRIMARY"
	}
	// On a small table the server prefers to read all of it, and would wait for
	// rows that are none of the query's.
	return "saga FORCE INDEX (" + index + ")"
}

func (d *mysqlDialect) skipsLocked() bool { return d.skipLocked }

// sweep looks for locked rows only when it has met one: DELETE has no SKIP LOCKED.
func (d *mysqlDialect) sweep(db *gorm.DB, limit int) (int64, error) {
	expired := "done = true AND due <= " + d.now()
	result := db.Exec("DELETE FROM saga WHERE "+expired+" ORDER BY due LIMIT ?", limit)
	if !d.skipLocked || !d.isLocked(result.Error) {
		return result.RowsAffected, result.Error
	}
	var gids []string
	err := db.Raw("SELECT gid FROM "+d.by(indexDue)+" WHERE "+expired+" ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED", limit).Scan(&gids).Error
	if err != nil || len(gids) == 0 {
		return 0, err
	}
	result = db.Exec("DELETE FROM saga WHERE gid IN ? AND "+expired, gids)
	return result.RowsAffected, result.Error
}

func (d *mysqlDialect) showsUnflushed() bool { return d.unflushed.Load() }

// flush commits a change: a commit returns once the log is on disk up to its own
// place. Asking how far the log is (SHOW STATUS) costs the server more.
func (d *mysqlDialect) flush(db *gorm.DB) error {
	return db.Exec("INSERT INTO saga_flush (id, n) VALUES (1, 0) ON DUPLICATE KEY UPDATE n = n + 1").Error
}

func (d *mysqlDialect) isDeadlock(err error) bool {
	const deadlock = 1213
	return is(err, deadlock)
}

func (d *mysqlDialect) isLocked(err error) bool {
	const lockWaitTimeout, lockNoWait = 1205, 3572 // MariaDB has one number for both
	return is(err, lockWaitTimeout) || is(err, lockNoWait)
}

func is(err error, number uint16) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && refused.Number == number
}
