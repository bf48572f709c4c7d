package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// with gives the sessions of PostgreSQL a parameter.
func (c Config) with(t *testing.T, name, value string) Config {
	t.Helper()
	u, err := url.Parse(c.URL)
	require.NoError(t, err)
	if u.Scheme == "postgres" {
		options := u.Query()
		options.Set(name, value)
		u.RawQuery = options.Encode()
	}
	c.URL = u.String()
	return c
}

// kill ends a session or a statement of a schema's users, one that does something
// before one that does not.
func (k *kind) kill(ctx context.Context, admin *Store, schema string) error {
	statement := rand.N(2) == 0
	find := "SELECT id FROM information_schema.processlist WHERE db = ? ORDER BY command = 'Sleep', RAND() LIMIT 1"
	if k.name == "postgres" {
		find = "SELECT pid FROM pg_stat_activity WHERE application_name = ? ORDER BY state <> 'active', random() LIMIT 1"
	}
	ids, err := sqlconn.QueryStrings(ctx, admin.db, admin.dialect.bind(find), schema)
	if err != nil || len(ids) == 0 {
		return err
	}
	switch {
	case k.name == "mysql" && statement:
		err = admin.exec(ctx, admin.db, "KILL QUERY "+ids[0])
	case k.name == "mysql":
		err = admin.exec(ctx, admin.db, "KILL CONNECTION "+ids[0])
	case statement:
		err = admin.exec(ctx, admin.db, "SELECT pg_cancel_backend("+ids[0]+")")
	default:
		err = admin.exec(ctx, admin.db, "SELECT pg_terminate_backend("+ids[0]+")")
	}
	const noSuchThread = 1094
	if sqlconn.HasNumber(err, noSuchThread) {
		return nil // it was quicker
	}
	return err
}

// Sessions and statements are killed while many write.
func TestApply_UnderKills_LosesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const kills = 100
		admin := open(t, k.config())
		cfg := k.config()
		cfg = cfg.with(t, "application_name", cfg.Schema)
		s := open(t, cfg)
		l := newLoad(t, s)
		l.runBeside(func(stop <-chan struct{}) {
			pause := time.NewTicker(time.Millisecond)
			defer pause.Stop()
			for killed, calls := 0, int64(0); killed < kills; {
				select {
				case <-pause.C:
				case <-stop:
					return
				}
				if l.calls.Load() == calls { // they must get somewhere between two kills
					continue
				}
				calls = l.calls.Load()
				killed++
				if err := k.kill(t.Context(), admin, cfg.Schema); err != nil {
					l.fault("kill: %v", err)
					return
				}
			}
		})
		requireMended(t, s, cfg.Conns)
		l.requireSound()
		require.NotEmpty(t, l.doubts)
	})
}

// losses counts how often a transaction lost a race for locks.
type losses struct {
	dialect
	n atomic.Int64
}

func (l *losses) isDeadlock(err error) bool {
	no := l.dialect.isDeadlock(err)
	if no {
		l.n.Add(1)
	}
	return no
}

// Somebody else locks sagas in the order in which batches do not. No caller is told
// of a deadlock, and neither side loses an update.
func TestApply_UnderDeadlocks_LosesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const wanted = 20
		// PostgreSQL has the one lose that first looks for a deadlock and finds one,
		// after it has waited for so long.
		cfg := k.config().with(t, "deadlock_timeout", "30ms")
		cfg.Lease = 10 * time.Minute // the server ends no session that is slow
		s, other := open(t, cfg), open(t, cfg)
		s.stopSweeping() // it asks the dialect, too
		s.sweeping.Wait()
		lost := &losses{dialect: s.dialect}
		s.dialect = lost
		other.mustExec(t, "CREATE TABLE heavy (n INT)")

		l := newLoad(t, s)
		l.sure.Store(true)
		noted := map[string]int{}
		l.runBeside(func(stop <-chan struct{}) {
			for deadline := time.Now().Add(patience); lost.n.Load() < wanted; {
				select {
				case <-stop:
					return
				default:
				}
				if time.Now().After(deadline) {
					l.fault("lost %d times within %v", lost.n.Load(), patience)
					return
				}
				var gids []string
				err := sqlconn.InTransaction(t.Context(), other.db, func(tx sqlconn.Session) (err error) {
					gids, err = other.noteBackwards(t.Context(), tx, roundGIDs(l.rounds.Load()))
					return err
				})
				switch {
				case err == nil:
					for _, gid := range gids {
						noted[gid]++
					}
				case !errors.Is(err, errNothing) && !other.dialect.isDeadlock(err) && !other.dialect.isLocked(err):
					l.fault("the other side: %v", err)
					return
				}
			}
		})
		l.requireSound()
		require.Empty(t, l.doubts)
		require.NotEmpty(t, noted)
		for gid, n := range noted {
			require.Len(t, l.get(gid).Note, n, gid)
		}
	})
}

var errNothing = errors.New("nothing there to lock")

// noteBackwards adds a letter to the notes of two sagas. The first is some saga of
// the second half. The other comes before it, where others begin to lock, and is
// held by somebody, who before long waits for the first.
func (s *Store) noteBackwards(ctx context.Context, tx sqlconn.Session, gids []string) (noted []string, err error) {
	n := len(gids)/2 + rand.N(len(gids)/2)
	before, last := gids[:n], gids[n]
	if rand.N(4) > 0 { // InnoDB has the one lose that has written less
		heavy := "INSERT INTO heavy VALUES (1)" + strings.Repeat(",(1)", 30)
		if err := s.exec(ctx, tx, heavy); err != nil {
			return nil, err
		}
	}
	if err := s.note(ctx, tx, last); err != nil {
		return nil, err
	}
	var held []string
	for tries := 0; tries < 20 && len(held) == 0; tries++ {
		if held, err = s.held(ctx, before); err != nil {
			return nil, err
		}
	}
	first := before[rand.N(len(before))]
	if len(held) > 0 {
		first = held[0]
	}
	return []string{last, first}, s.note(ctx, tx, first)
}

func (s *Store) note(ctx context.Context, tx sqlconn.Session, gid string) error {
	add := "UPDATE saga SET note = COALESCE(note, ''::bytea) || 'x'::bytea WHERE gid = ?"
	if _, ok := s.dialect.(*mysqlDialect); ok {
		add = "UPDATE saga SET note = CONCAT(COALESCE(note, ''), 'x') WHERE gid = ?"
	}
	changed, err := sqlconn.Affected(tx.ExecContext(ctx, s.dialect.bind(add), gid))
	if err == nil && changed == 0 {
		return errNothing
	}
	return err
}

// held lists which of these sagas somebody has locked.
func (s *Store) held(ctx context.Context, gids []string) (held []string, err error) {
	err = sqlconn.InTransaction(ctx, s.db, func(tx sqlconn.Session) error {
		gidIn, args := s.dialect.gidIn(gids)
		free, err := sqlconn.QueryStrings(ctx, tx, s.dialect.bind("SELECT gid FROM saga WHERE "+gidIn+" FOR UPDATE SKIP LOCKED"), args...)
		if err != nil {
			return err
		}
		held = slices.DeleteFunc(slices.Clone(gids), func(gid string) bool { return slices.Contains(free, gid) })
		return nil
	})
	return held, err
}

// losing is a dialect whose transactions always lose.
type losing struct {
	dialect
	err   error
	tries int
}

func (l *losing) apply(context.Context, *sql.DB, chunk, int64, bool) (rest chunk, err error) {
	l.tries++
	return chunk{}, l.err
}

func TestApply_AlwaysLosing_GivesUp(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		s.stopSweeping()
		s.sweeping.Wait()
		deadlock := map[string]error{
			"mysql":    &mysql.MySQLError{Number: 1213},
			"postgres": &pgconn.PgError{Code: "40P01"},
		}[k.name]
		always := &losing{dialect: s.dialect, err: deadlock}
		s.dialect = always
		err := s.Apply(context.Background(), []store.Change{create(1)})[0]
		require.ErrorIs(t, err, deadlock)
		require.Equal(t, maxTries, always.tries)
	})
}
