package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"sagabench/bench/internal/sample"
)

// postgresEngine asks a PostgreSQL.
type postgresEngine struct{ *sqlEngine }

func openPostgres(ctx context.Context, server Server) (sample.Store, error) {
	cfg, err := pgx.ParseConfig(server.URL)
	if err != nil {
		// The error may quote the URL, and with it the password.
		return nil, errors.New("the URL is not one of a PostgreSQL (postgres://USER:PASSWORD@HOST:PORT/DATABASE)")
	}
	opened := time.Now()
	e, err := connect(ctx, stdlib.OpenDB(*cfg), server, int(cfg.Port), "postgres", "postmaster")
	if err != nil {
		return nil, err
	}
	return &postgresSampler{sqlSampler: sqlSampler{newSampler(ctx, postgresEngine{e}, e.process)}, opened: opened}, nil
}

// Counters from which fsyncs are derived: bytes of the log by its position, as of now, and
// the bytes and syncs that sessions have reported.
const (
	logWritten    = "log_written"
	reportedBytes = "reported_bytes"
	reportedSyncs = "reported_syncs"
)

func (p postgresEngine) counters(ctx context.Context) (*counters, error) {
	c := &counters{values: map[string]float64{}, unknown: map[string]error{}}
	var size float64
	err := p.row(ctx, []any{&size, &c.deleted}, "SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint, "+
		"COALESCE(SUM(s.n_tup_del), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "+
		"LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE n.nspname = $1 AND c.relname = 'saga'", p.schema)
	if err != nil {
		return nil, err
	}
	c.values[keyMemory] = size
	if size == 0 {
		c.unknown[keyMemory] = errors.New("there is no table to look at")
	}
	p.readDebt(ctx, c)
	// It writes whole pages, and sends to clients by other calls.
	c.mostWritten, _ = p.process.sum(ctx, passedBy)
	c.unknown[keyWritten] = errors.New("PostgreSQL counts it by its processes only, which are on another machine or of another user")
	var version int
	var method string
	var standby bool
	err = p.row(ctx, []any{&version, &method, &standby}, "SELECT current_setting('server_version_num')::int, current_setting('wal_sync_method'), pg_is_in_recovery()")
	switch {
	case err != nil:
		return nil, err
	case standby:
		c.unknown[keyFsyncs] = errors.New("a standby does not count those of the log that it receives")
		return c, nil
	case version < 140_000 || version >= 180_000:
		c.unknown[keyFsyncs] = fmt.Errorf("PostgreSQL %d does not count them in pg_stat_wal", version/10_000)
		return c, nil
	case strings.HasPrefix(method, "open_"):
		c.unknown[keyFsyncs] = fmt.Errorf("wal_sync_method %s syncs as it writes, and counts nothing", method)
		return c, nil
	}
	var written, bytes, syncs float64
	err = p.row(ctx, []any{&written, &bytes, &syncs},
		"SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, wal_bytes::bigint, wal_sync FROM pg_stat_wal")
	c.values[logWritten], c.values[reportedBytes], c.values[reportedSyncs] = written, bytes, syncs
	return c, err
}

// readDebt reads how much log there is since the last checkpoint: the next one writes the
// pages that it changed. It stays unknown if the user may not ask.
func (p postgresEngine) readDebt(ctx context.Context, c *counters) {
	var bytes float64
	if p.row(ctx, []any{&bytes}, "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END - redo_lsn)::bigint "+
		"FROM pg_control_checkpoint()") == nil {
		c.debt = &bytes
	}
}

// connections leaves out those that are reserved for superusers.
func (p postgresEngine) connections(ctx context.Context) (open, most int, err error) {
	err = p.row(ctx, []any{&open, &most}, "SELECT SUM(numbackends)::int, "+
		"current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int FROM pg_stat_database")
	return open, most, err
}

const (
	// leastReported is the share of the log that sessions must have reported for the
	// rest to be taken as alike.
	leastReported = 0.25
	// leastWarmUp ensures that what sessions report in the interval, a second late, is of
	// the load only.
	leastWarmUp = time.Second
)

// postgresSampler derives the fsyncs.
type postgresSampler struct {
	sqlSampler
	opened time.Time
	warmUp time.Duration // from then to Begin
}

func (p *postgresSampler) Begin(ctx context.Context) error {
	p.warmUp = time.Since(p.opened)
	return p.sqlSampler.Begin(ctx)
}

func (p *postgresSampler) AddTo(u *sample.Usage) {
	p.sqlSampler.AddTo(u)
	if p.before == nil || p.after == nil || p.after.unknown[keyFsyncs] != nil {
		return
	}
	fsyncs, err := fsyncs(p.before, p.after)
	if p.warmUp < leastWarmUp {
		err = errors.New("its sessions report once a second, and the warm-up was shorter")
	}
	if err != nil {
		u.Fail("store fsyncs", err)
		return
	}
	u.Total.StoreFsyncs = &fsyncs
}

// fsyncs makes up for what sessions have not reported yet. They report syncs together with
// the bytes of log that these were for, and how many bytes there are is known at once.
func fsyncs(b, a *counters) (float64, error) {
	grown := func(name string) float64 { return a.values[name] - b.values[name] }
	written, bytes, syncs := grown(logWritten), grown(reportedBytes), grown(reportedSyncs)
	switch {
	case written < 0 || bytes < 0 || syncs < 0:
		return 0, errors.New("its counters of the log went back")
	case bytes < leastReported*written:
		return 0, fmt.Errorf("its sessions report once a second, and reported %.0f bytes of the %.0f that they wrote", bytes, written)
	case bytes == 0:
		return 0, nil
	}
	return syncs * written / bytes, nil
}
