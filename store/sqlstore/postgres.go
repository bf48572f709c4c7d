package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"sagabench/store"
)

// postgresDialect is PostgreSQL. A batch is handed over as one array for each
// column, so that the statement is the same for every batch and is planned once.
// Arrays are passed by pointer: gorm would spread them into as many parameters.
type postgresDialect struct {
	client *pgx.ConnConfig
}

func (d *postgresDialect) connect(ctx context.Context, cfg Config) (*gorm.DB, error) {
	client := d.client
	client.ConnectTimeout = cfg.Timeout
	if client.RuntimeParams == nil {
		client.RuntimeParams = map[string]string{}
	}
	for name, value := range map[string]string{
		"search_path":                   cfg.Schema,
		"default_transaction_isolation": "read committed",
		"lock_timeout":                  strconv.FormatInt(cfg.lockWait().Milliseconds(), 10),
		// What the server knows of the size of a table that fills and empties is
		// out of date, and by that it may choose to read all of it. Every
		// statement here has an index to go by.
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"plan_cache_mode":  "force_generic_plan",
		"jit":              "off",
	} {
		client.RuntimeParams[name] = value
	}
	pool := stdlib.OpenDB(*client)
	db, err := openGorm(gormpostgres.New(gormpostgres.Config{Conn: pool}), pool, cfg)
	if err != nil {
		return nil, err
	}
	var version int
	if err = pool.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err == nil && version < 110_000 {
		err = fmt.Errorf("the server is version %d: want PostgreSQL 11 or later", version/10_000)
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

func (d *postgresDialect) insert(tx *gorm.DB, creates []*store.Create) (in []string, err error) {
	gids := make([]string, len(creates))
	dues := make([]int64, len(creates))
	owners := make([]string, len(creates))
	branches := make([]int32, len(creates))
	bodies := make([][]byte, len(creates))
	for i, c := range creates {
		gids[i], dues[i], owners[i] = c.GID, millis(max(c.Due, 0)), c.Owner
		branches[i], bodies[i] = int32(2*c.Steps), notNil(c.Body)
	}
	now := d.now()
	err = tx.Raw("INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) "+
		"SELECT gid, 's', false, 1, "+now+", "+now+", "+now+" + due, owner, repeat('-', branches), body "+
		"FROM unnest(?::text[], ?::bigint[], ?::text[], ?::int[], ?::bytea[]) AS v(gid, due, owner, branches, body) "+
		"ON CONFLICT (gid) DO NOTHING RETURNING gid",
		&gids, &dues, &owners, &branches, &bodies).Scan(&in).Error
	return in, err
}

func (d *postgresDialect) lock(tx *gorm.DB, gids []string) (rows []lockedRow, err error) {
	err = tx.Raw("SELECT "+lockedColumns+", "+d.now()+" AS now FROM saga WHERE gid = ANY(?::text[]) ORDER BY gid FOR UPDATE",
		&gids).Scan(&rows).Error
	return rows, err
}

func (d *postgresDialect) write(tx *gorm.DB, rows []written) error {
	gids := make([]string, len(rows))
	statuses := make([]string, len(rows))
	dones := make([]bool, len(rows))
	updates := make([]int64, len(rows))
	dues := make([]int64, len(rows))
	owners := make([]string, len(rows))
	marks := make([]string, len(rows))
	notes := make([][]byte, len(rows))
	for i, r := range rows {
		gids[i], statuses[i], dones[i], updates[i] = r.GID, r.Status, r.Done, r.Updated
		dues[i], owners[i], marks[i], notes[i] = r.Due, r.Owner, r.Marks, r.note
	}
	return tx.Exec("UPDATE saga SET status = v.status, done = v.done, updated = v.updated, due = v.due, owner = v.owner, "+
		"marks = v.marks, note = COALESCE(v.note, saga.note) "+
		"FROM unnest(?::text[], ?::text[], ?::bool[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::bytea[]) "+
		"AS v(gid, status, done, updated, due, owner, marks, note) WHERE saga.gid = v.gid",
		&gids, &statuses, &dones, &updates, &dues, &owners, &marks, &notes).Error
}

func (d *postgresDialect) lockDue(tx *gorm.DB, limit int) (rows []dueRow, err error) {
	now := d.now()
	err = tx.Raw("SELECT saga.*, "+now+" AS now FROM saga WHERE done = false AND due <= "+now+
		" ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED", limit).Scan(&rows).Error
	// A row that changed as it was being locked is out of its order.
	slices.SortStableFunc(rows, func(a, b dueRow) int { return cmp.Compare(a.Saga.Due, b.Saga.Due) })
	return rows, err
}

func (d *postgresDialect) sweep(db *gorm.DB, limit int) (int64, error) {
	result := db.Exec("DELETE FROM saga WHERE ctid = ANY(ARRAY(SELECT ctid FROM saga WHERE done = true AND due <= "+d.now()+
		" ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED))", limit)
	return result.RowsAffected, result.Error
}

func (d *postgresDialect) hasNoEffect(err error) bool {
	const serialization, deadlock, lockTimeout = "40001", "40P01", "55P03"
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == serialization || refused.Code == deadlock || refused.Code == lockTimeout)
}
