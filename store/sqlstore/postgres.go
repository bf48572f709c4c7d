package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// postgresDialect is PostgreSQL. A batch is handed over as one array for each
// column, so that the statement is the same for every batch and is planned once.
// Arrays are passed by pointer: gorm would spread them into as many parameters.
type postgresDialect struct {
	client *pgx.ConnConfig
}

func (d *postgresDialect) connect(ctx context.Context, cfg Config, dial dialer) (*gorm.DB, error) {
	client := d.client
	client.ConnectTimeout = cfg.Timeout
	client.DialFunc = pgconn.DialFunc(dial)
	if client.RuntimeParams == nil {
		client.RuntimeParams = map[string]string{}
	}
	silence := cfg.sessionBound()
	for name, value := range map[string]string{
		"search_path":                   cfg.Schema,
		"default_transaction_isolation": "read committed",
		"lock_timeout":                  strconv.FormatInt(lockWait.Milliseconds(), 10),
		// No session may keep its locks longer than this when its client has vanished
		// between two statements, or as it takes an answer; one without a transaction
		// costs no more than its place.
		"idle_in_transaction_session_timeout": strconv.FormatInt(silence.Milliseconds(), 10),
		"tcp_user_timeout":                    strconv.FormatInt(silence.Milliseconds(), 10),
		"tcp_keepalives_idle":                 strconv.Itoa(int(silence.Seconds())),
		"tcp_keepalives_interval":             strconv.Itoa(int(silence.Seconds())),
		// What the server knows of the size of a table that fills and empties is
		// out of date, and by that it may choose to read all of it, or all that has
		// not ended, to sort it for one page. Every statement here has an index to go
		// by, in its order.
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"enable_sort":      "off",
		"plan_cache_mode":  "force_generic_plan",
		"jit":              "off",
		// An index keeps the entries of rows that ended until the table is vacuumed. A
		// plain scan leaves a sign at those that it has been to; a bitmap's goes to
		// all of them each time.
		"enable_bitmapscan": "off",
	} {
		client.RuntimeParams[name] = value
	}
	pool := stdlib.OpenDB(*client)
	db, err := openGorm(gormpostgres.New(gormpostgres.Config{Conn: pool}), pool, cfg)
	if err != nil {
		return nil, err
	}
	var version int
	if err = pool.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err == nil && version < 120_000 {
		err = fmt.Errorf("the server is version %d: want PostgreSQL 12 or later", version/10_000)
	}
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db, nil
}

func (d *postgresDialect) migrating(db *gorm.DB, cfg Config, f func(tx *gorm.DB) error) error {
	return db.Transaction(func(tx *gorm.DB) error {
		wait := "SET LOCAL lock_timeout = " + strconv.FormatInt(openTimeout.Milliseconds(), 10)
		if err := tx.Exec(wait).Error; err != nil {
			return err
		}
		if err := tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", "saga_migration."+cfg.Schema).Error; err != nil {
			return err
		}
		var there int64
		if err := tx.Raw("SELECT COUNT(*) FROM pg_namespace WHERE nspname = ?", cfg.Schema).Scan(&there).Error; err != nil {
			return err
		}
		if there == 0 {
			if err := tx.Exec("CREATE SCHEMA " + cfg.Schema).Error; err != nil {
				return err
			}
		}
		return f(tx)
	})
}

func (d *postgresDialect) migrations() [][]string {
	return [][]string{{
		// The numbers first, so that none is padded. The room left in a page is
		// for the new row of a mark or two.
		`CREATE TABLE saga (
			created BIGINT NOT NULL,
			updated BIGINT NOT NULL,
			due BIGINT NOT NULL,
			epoch BIGINT NOT NULL,
			done BOOLEAN NOT NULL,
			status TEXT COLLATE "C" NOT NULL,
			gid TEXT COLLATE "C" NOT NULL,
			owner TEXT COLLATE "C" NOT NULL,
			marks TEXT COLLATE "C" NOT NULL,
			note BYTEA,
			body BYTEA NOT NULL
		) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)`,
		`CREATE UNIQUE INDEX saga_gid ON saga (gid)`,
		`CREATE INDEX saga_due ON saga (due) WHERE done = false`,
		`CREATE INDEX saga_expiry ON saga (due) WHERE done = true`,
	}}
}

func (d *postgresDialect) now() string {
	return "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
}

func (d *postgresDialect) by(string) string { return "saga" }

func (d *postgresDialect) skipsLocked() bool { return true }

func (d *postgresDialect) sweep(db *gorm.DB, limit int) (int64, error) {
	result := db.Exec("DELETE FROM saga WHERE ctid = ANY(ARRAY(SELECT ctid FROM saga WHERE done = true AND due <= "+d.now()+
		" ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED))", limit)
	return result.RowsAffected, result.Error
}

// showsUnflushed is false: a commit is shown once it is on disk, and on the standby
// if it is to wait for that.
func (d *postgresDialect) showsUnflushed() bool { return false }

func (d *postgresDialect) flush(*gorm.DB) error { return nil }

func (d *postgresDialect) isDeadlock(err error) bool {
	const serialization, deadlock = "40001", "40P01"
	return hasCode(err, serialization) || hasCode(err, deadlock)
}

func (d *postgresDialect) isLocked(err error) bool {
	const lockTimeout = "55P03"
	return hasCode(err, lockTimeout)
}

func hasCode(err error, code string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == code
}
