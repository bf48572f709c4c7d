package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	skipLocked string // what leaves out rows that others have locked, if it can
}

// minPacket is for the longest body, escaped, with the statement around it.
const minPacket = 2*store.MaxBodyBytes + 1<<20

func (d *mysqlDialect) connect(ctx context.Context, cfg Config) (*gorm.DB, error) {
	client := d.client
	client.Timeout = cfg.Timeout
	client.Logger = &mysql.NopLogger{}
	// One round trip for a statement that is different each time, where preparing
	// it would be two.
	client.InterpolateParams = true
	if d.database == "" {
		d.database = cfg.Schema
	}
	if err := d.introduce(ctx, client); err != nil {
		return nil, err
	}
	isolation := "transaction_isolation"
	if d.mariaDB {
		isolation = "tx_isolation"
	}
	client.DBName = d.database
	client.Params = map[string]string{
		// A row is read as it is once it is locked, and the gaps between rows are
		// not locked.
		isolation:                  "'READ-COMMITTED'",
		"innodb_lock_wait_timeout": strconv.Itoa(int(cfg.lockWait().Seconds())),
		// Nothing is cut off, and a backslash escapes.
		"sql_mode": "'STRICT_ALL_TABLES'",
	}
	connector, err := mysql.NewConnector(client)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	return openGorm(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}), pool, cfg)
}

// introduce asks the server who it is, and makes the database.
func (d *mysqlDialect) introduce(ctx context.Context, client *mysql.Config) error {
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
	if d.mariaDB && number >= 10_006 || !d.mariaDB && number >= 8_000 {
		d.skipLocked = " SKIP LOCKED"
	}
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
			id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
			gid VARCHAR(` + strconv.Itoa(store.MaxGIDBytes) + `) ` + ascii + `,
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
			UNIQUE KEY saga_gid (gid),
			KEY saga_due (done, due)
		) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
	}}
}

// now does without UNIX_TIMESTAMP, which asks the session's time zone.
func (d *mysqlDialect) now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
}

const duplicateEntry = 1062

// insert is all or nothing: a gid that is there refuses the statement. IGNORE
// would let in more than that.
func (d *mysqlDialect) insert(tx *gorm.DB, creates []*store.Create) ([]string, error) {
	const values = "(?, 's', false, 1, n.now, n.now, n.now + ?, ?, REPEAT('-', ?), ?)"
	gids := make([]string, len(creates))
	args := make([]any, 0, 5*len(creates))
	for i, c := range creates {
		gids[i] = c.GID
		args = append(args, c.GID, millis(max(c.Due, 0)), c.Owner, 2*c.Steps, notNil(c.Body))
	}
	row := strings.ReplaceAll(values, "n.now", d.now())
	err := tx.Exec("INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) VALUES "+
		repeat(row, len(creates)), args...).Error
	if is(err, duplicateEntry) {
		return nil, nil
	}
	return gids, err
}

// lock names the index: on a small table the server prefers to read all of it,
// and would wait for rows that are none of this batch's.
func (d *mysqlDialect) lock(tx *gorm.DB, gids []string) (rows []lockedRow, err error) {
	err = tx.Raw("SELECT id, "+lockedColumns+", "+d.now()+" AS now FROM saga FORCE INDEX (saga_gid) "+
		"WHERE gid IN ? ORDER BY gid FOR UPDATE", gids).Scan(&rows).Error
	return rows, err
}

// write puts rows in that are there: that is the one statement that sets many
// rows to different values without a temporary table.
func (d *mysqlDialect) write(tx *gorm.DB, rows []written) error {
	const values = "(?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '', ?)"
	args := make([]any, 0, 9*len(rows))
	var notes string
	for _, r := range rows {
		args = append(args, r.ID, r.GID, r.Status, r.Done, r.Updated, r.Due, r.Owner, r.Marks, r.note)
		if r.note != nil {
			// Only if need be: the server would read every old note.
			notes = ", note = COALESCE(VALUES(note), note)"
		}
	}
	return tx.Exec("INSERT INTO saga (id, gid, status, done, updated, due, owner, marks, epoch, created, body, note) VALUES "+
		repeat(values, len(rows))+" ON DUPLICATE KEY UPDATE status = VALUES(status), done = VALUES(done), "+
		"updated = VALUES(updated), due = VALUES(due), owner = VALUES(owner), marks = VALUES(marks)"+notes, args...).Error
}

func (d *mysqlDialect) lockDue(tx *gorm.DB, limit int) (rows []dueRow, err error) {
	now := d.now()
	err = tx.Raw("SELECT saga.*, "+now+" AS now FROM saga FORCE INDEX (saga_due) WHERE done = false AND due <= "+now+
		" ORDER BY due LIMIT ? FOR UPDATE"+d.skipLocked, limit).Scan(&rows).Error
	return rows, err
}

func (d *mysqlDialect) sweep(db *gorm.DB, limit int) (int64, error) {
	result := db.Exec("DELETE FROM saga WHERE done = true AND due <= "+d.now()+" ORDER BY due LIMIT ?", limit)
	return result.RowsAffected, result.Error
}

func (d *mysqlDialect) hasNoEffect(err error) bool {
	const lockWaitTimeout, deadlock = 1205, 1213
	return is(err, lockWaitTimeout) || is(err, deadlock)
}

func is(err error, number uint16) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && refused.Number == number
}

// repeat lists n rows of values.
func repeat(row string, n int) string { return strings.Repeat(row+",", n-1) + row }

// notNil tells an empty body from none.
func notNil(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}
