package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// postgresDialect is PostgreSQL.
type postgresDialect struct {
	client       *pgx.ConnConfig
	unreplicated atomic.Bool // see showsUnflushed
	unwaited     *atomic.Int64
}

func (d *postgresDialect) connect(ctx context.Context, cfg Config, dial sqlconn.Dialer) (*sql.DB, error) {
	client := d.client
	client.ConnectTimeout = cfg.Timeout
	client.DialFunc = pgconn.DialFunc(dial)
	// A session that is cancelled while it waits for the standby says that it has committed.
	client.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Routine == "SyncRepWaitForLSN" {
			d.unwaited.Add(1)
		}
	}
	if client.RuntimeParams == nil {
		client.RuntimeParams = map[string]string{}
	}
	silence := cfg.silence()
	for name, value := range map[string]string{
		"search_path":                   cfg.Schema,
		"default_transaction_isolation": "read committed",
		"lock_timeout":                  strconv.FormatInt(lockWait.Milliseconds(), 10),
		// A session keeps its locks no longer than this if its client vanishes between
		// two statements, or while it receives an answer. A session without a transaction
		// has no locks.
		"idle_in_transaction_session_timeout": strconv.FormatInt(silence.Milliseconds(), 10),
		"tcp_user_timeout":                    strconv.FormatInt(silence.Milliseconds(), 10),
		"tcp_keepalives_idle":                 strconv.Itoa(int(silence.Seconds())),
		"tcp_keepalives_interval":             strconv.Itoa(int(silence.Seconds())),
		// The server's statistics of a table that fills and empties are out of date. By
		// them it may read and sort the whole table for one page. Every statement here
		// has an index in its order.
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"enable_sort":      "off",
		"plan_cache_mode":  "force_generic_plan",
		"jit":              "off",
		// An index keeps the entries of dead rows until the table is vacuumed. An index
		// scan marks those that it has visited; a bitmap scan visits them each time.
		"enable_bitmapscan": "off",
	} {
		client.RuntimeParams[name] = value
	}
	pool := stdlib.OpenDB(*client)
	pool.SetMaxOpenConns(cfg.Conns)
	pool.SetMaxIdleConns(cfg.Conns)
	var version int
	var product string
	var standby bool
	err := pool.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int, version(), pg_is_in_recovery()").Scan(&version, &product, &standby)
	if err == nil {
		err = checkPostgres(version, product, standby)
	}
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// checkPostgres refuses servers that are too old or take no writes, and those that only
// speak like one.
func checkPostgres(version int, product string, standby bool) error {
	switch {
	case standby:
		return fmt.Errorf("%w: it is a standby, and does not take writes: give the primary", store.ErrUnsafe)
	case strings.Contains(product, "CockroachDB"): // docs/sql-compatibility.md
		return errors.New("the server is CockroachDB: the store needs statements that it refuses")
	case version < 120_000:
		return fmt.Errorf("the server is version %d: want PostgreSQL 12 or later", version/10_000)
	default:
		return nil
	}
}

func (d *postgresDialect) migrating(ctx context.Context, db *sql.DB, cfg Config, f func(tx sqlconn.Session) error) error {
	return sqlconn.InTransaction(ctx, db, func(tx sqlconn.Session) error {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", openTimeout.Milliseconds())); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "saga_migration."+cfg.Schema); err != nil {
			return err
		}
		var existing int64
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_namespace WHERE nspname = $1", cfg.Schema).Scan(&existing); err != nil {
			return err
		}
		if existing == 0 {
			if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+cfg.Schema); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

func (d *postgresDialect) migrations() [][]string {
	return [][]string{{
		// Numbers come first, so that none is padded. The free space in a page is for
		// the new row versions of a mark or two.
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

// dropSchema relies on the server to keep a schema that contains anything.
func (d *postgresDialect) dropSchema(ctx context.Context, db *sql.DB, schema string) error {
	_, err := db.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+schema+" RESTRICT")
	const dependentObjects = "2BP01"
	if sqlconn.HasCode(err, dependentObjects) {
		return nil
	}
	return err
}

const postgresNow = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint"

func (d *postgresDialect) now() string { return postgresNow }

func (d *postgresDialect) table(string) string { return "saga" }

func (d *postgresDialect) bind(text string) string { return numbered(text) }

// numbered numbers the parameters of a statement: $1, $2, …
func numbered(text string) string {
	parts := strings.Split(text, "?")
	text = parts[0]
	for i, part := range parts[1:] {
		text += "$" + strconv.Itoa(i+1) + part
	}
	return text
}

func (d *postgresDialect) gidIn(gids []string) (condition string, args []any) {
	return "gid = ANY(?)", []any{gids}
}

func (d *postgresDialect) skipsLocked() bool { return true }

func (d *postgresDialect) sweep(ctx context.Context, db *sql.DB, limit int) (int64, error) {
	return sqlconn.Affected(db.ExecContext(ctx, "DELETE FROM saga WHERE ctid = ANY(ARRAY(SELECT ctid FROM saga WHERE done = true AND due <= "+d.now()+
		" ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED))", limit))
}

// showsUnflushed reports whether commits wait for a standby. Others are shown once they are
// on disk. PostgreSQL shows a commit that the standby may lack if the session was told to
// wait no longer, as when its client gave up, and after a restart.
func (d *postgresDialect) showsUnflushed() bool { return d.unreplicated.Load() }

// flush commits a record in the log that changes nothing.
func (d *postgresDialect) flush(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'sagabench', '')")
	return err
}

func (d *postgresDialect) isDeadlock(err error) bool {
	const serialization, deadlock = "40001", "40P01"
	return sqlconn.HasCode(err, serialization) || sqlconn.HasCode(err, deadlock)
}

func (d *postgresDialect) isLocked(err error) bool {
	const lockTimeout = "55P03"
	return sqlconn.HasCode(err, lockTimeout)
}
