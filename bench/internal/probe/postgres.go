package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresServer is a PostgreSQL. It counts neither the bytes of its clients nor
// their statements.
type postgresServer struct {
	*sqlServer
	schema string
	made   time.Time
	warmUp time.Duration // from then to the interval

	before, after *postgresCounts
	locks         *lockWaits // nil before the interval
}

// postgresCounts is what the server counted since it was started.
type postgresCounts struct {
	written int64 // bytes of the log, by its position: as of now

	// What its sessions have told of: one that is busy tells once a second, one
	// that falls idle ten seconds later.
	toldBytes int64
	toldSyncs int64
	noSyncs   error // why they are not known
	deleted   int64 // sagas

	size int64 // of the tables and their indexes, in bytes
}

func newPostgresServer(ctx context.Context, server Server, timeout time.Duration) (*postgresServer, error) {
	cfg, err := pgx.ParseConfig(server.URL)
	if err != nil {
		// The error may quote the URL, and with it the password.
		return nil, errors.New("the URL is not one of a PostgreSQL (postgres://USER:PASSWORD@HOST:PORT/DATABASE)")
	}
	p := &postgresServer{schema: server.Schema, made: time.Now()}
	if p.sqlServer, err = connectSQL(ctx, stdlib.OpenDB(*cfg), timeout); err != nil {
		return nil, err
	}
	p.findFamily(ctx, server, int(cfg.Port), "postgres", "postmaster")
	return p, nil
}

func (p *postgresServer) begin(ctx context.Context) (err error) {
	p.warmUp = time.Since(p.made)
	if p.before, err = p.look(ctx); err != nil {
		return err
	}
	p.cpuBegan, err = p.cpu(ctx)
	p.locks = watchLocks(ctx, p.waiting)
	return err
}

func (p *postgresServer) end(ctx context.Context) (err error) {
	p.endLocks()
	var noCPU error
	p.cpuEnded, noCPU = p.cpu(ctx)
	if p.after, err = p.look(ctx); err != nil {
		return err
	}
	return noCPU
}

func (p *postgresServer) endLocks() {
	if p.locks != nil {
		p.locks.end()
	}
}

func (p *postgresServer) close() error {
	p.endLocks()
	return p.sqlServer.close()
}

func (p *postgresServer) look(ctx context.Context) (*postgresCounts, error) {
	var c postgresCounts
	err := p.row(ctx, []any{&c.size, &c.deleted}, "SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint, "+
		"COALESCE(SUM(s.n_tup_del), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "+
		"LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE n.nspname = $1 AND c.relname = 'saga'", p.schema)
	if err != nil {
		return nil, err
	}
	var version int
	var method string
	err = p.row(ctx, []any{&version, &method}, "SELECT current_setting('server_version_num')::int, current_setting('wal_sync_method')")
	if err != nil {
		return nil, err
	}
	switch {
	case version < 140_000 || version >= 180_000:
		c.noSyncs = fmt.Errorf("PostgreSQL %d does not count them in pg_stat_wal", version/10_000)
	case strings.HasPrefix(method, "open_"):
		c.noSyncs = fmt.Errorf("wal_sync_method %s syncs as it writes, and counts nothing", method)
	}
	if c.noSyncs != nil {
		return &c, nil
	}
	err = p.row(ctx, []any{&c.written, &c.toldBytes, &c.toldSyncs},
		"SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, wal_bytes::bigint, wal_sync FROM pg_stat_wal")
	if err != nil {
		return nil, err
	}
	return &c, nil
}

const (
	// leastTold is the share of the log that the sessions have to have told of for
	// the rest to be taken as alike.
	leastTold = 0.25
	// leastWarmUp is what keeps it to the load what they tell of in the interval, a
	// second late.
	leastWarmUp = time.Second
)

func (p *postgresServer) used() storeUse {
	var u storeUse
	p.addCPU(&u)
	b, a := p.before, p.after
	if b == nil || a == nil {
		return u
	}
	switch {
	case a.noSyncs != nil:
		u.fail("fsyncs", a.noSyncs)
	case p.warmUp < leastWarmUp:
		u.fail("fsyncs", errors.New("its sessions tell once a second, and the warm-up was shorter"))
	default:
		u.fsyncs = u.syncs(b, a)
	}
	p.locks.addTo(&u)
	switch {
	case a.deleted != b.deleted:
		u.fail("size", errDeleted)
	case b.size == 0:
		u.fail("size", errors.New("there is no table to look at"))
	default:
		u.memory = u.grown("size", b.size, a.size)
	}
	return u
}

// syncs makes up for what the sessions have not told of yet: they tell of the
// syncs together with the bytes of log that these were for, and how many bytes
// there are is known at once.
func (u *storeUse) syncs(b, a *postgresCounts) *float64 {
	written := u.grown("log", b.written, a.written)
	bytes := u.grown("log, as told by its sessions", b.toldBytes, a.toldBytes)
	syncs := u.grown("fsyncs", b.toldSyncs, a.toldSyncs)
	switch {
	case written == nil || bytes == nil || syncs == nil:
		return nil
	case float64(*bytes) < leastTold*float64(*written):
		u.fail("fsyncs", fmt.Errorf("its sessions tell once a second, and told of %d bytes of the %d that they wrote", *bytes, *written))
		return nil
	case *bytes == 0:
		return new(float64)
	}
	all := float64(*syncs) * float64(*written) / float64(*bytes)
	return &all
}
