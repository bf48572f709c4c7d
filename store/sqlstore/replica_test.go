//go:build unix

package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/sqlnodes"
	"sagabench/store"
)

func TestStore_WithAReplica(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]*lab.Kind{"mysql": lab.MySQL, "postgres": lab.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := labtest.StartReplicated(t, kind, lab.Config{})
			t.Run("the replica is no store", func(t *testing.T) { requireNoStore(t, kind, servers.Nodes()[1]) })
			t.Run("paused, nothing is acknowledged or shown", func(t *testing.T) { requireNothingWithoutTheReplica(t, servers) })
			t.Run("the primary is lost", func(t *testing.T) { requireAllOnTheReplica(t, servers) })
		})
	}
}

// requireNoStore opens a replica. A MariaDB is one for those who set read_only.
func requireNoStore(t *testing.T, kind *lab.Kind, replica *lab.Server) {
	if kind == lab.MySQL {
		db, err := sql.Open("mysql", replica.DSN("mysql"))
		require.NoError(t, err)
		defer db.Close()
		_, err = db.ExecContext(t.Context(), "SET GLOBAL read_only = ON")
		require.NoError(t, err)
		defer func() {
			_, err := db.ExecContext(t.Context(), "SET GLOBAL read_only = OFF")
			require.NoError(t, err)
		}()
	}
	_, err := Open(t.Context(), configOf(replica))
	require.ErrorIs(t, err, store.ErrUnsafe)
	require.ErrorContains(t, err, "not take writes")
	require.NotContains(t, err.Error(), "\n")
}

// requireAllOnTheReplica kills the primary in the middle of the load, and removes its data.
func requireAllOnTheReplica(t *testing.T, servers *sqlnodes.Replicated) {
	cfg := configOf(servers.Nodes()[0])
	s := open(t, cfg)
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.D4, settings.Durability, settings.Values)

	const workers, enough = 8, 200
	var mu sync.Mutex
	acknowledged := map[int]int{} // stages of sagas
	reached, lost := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	for first := range workers {
		running.Go(func() {
			for n := first; ; n += workers {
				for stage, change := range []store.Change{create(n), mark(n), finish(n)} {
					if s.Apply(context.WithoutCancel(t.Context()), []store.Change{change})[0] != nil {
						<-lost
						return
					}
					mu.Lock()
					acknowledged[n] = stage + 1
					if len(acknowledged) == enough && stage == 0 {
						close(reached)
					}
					mu.Unlock()
				}
			}
		})
	}
	select {
	case <-reached:
	case <-time.After(patience):
		t.Error("too few sagas")
	}
	require.NoError(t, servers.Nodes()[0].Destroy())
	close(lost)
	running.Wait()
	require.NoError(t, servers.Promote(t.Context()))

	cfg.URL = servers.Nodes()[1].URL()
	cfg.MustExist = true
	promoted := open(t, cfg)
	for n, stage := range acknowledged {
		require.GreaterOrEqual(t, stageOf(t, promoted, n), stage, gid(n))
	}
	requireVerified(t, promoted)
	requireApplied(t, promoted, create(-1))
	settings, err = promoted.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.D3, settings.Durability, "it has no replica of its own")
}

// requireNothingWithoutTheReplica pauses the replica. A client that gives up makes a PostgreSQL
// show what the standby has not got. That would be the answer to its next attempt.
func requireNothingWithoutTheReplica(t *testing.T, servers *sqlnodes.Replicated) {
	cfg := configOf(servers.Nodes()[0])
	s := open(t, cfg)
	cfg.Timeout = time.Second
	hasty := open(t, cfg)
	requireApplied(t, s, create(1))

	require.NoError(t, servers.Pause(t.Context()))
	write := func(change store.Change) error { return hasty.Apply(t.Context(), []store.Change{change})[0] }
	require.ErrorContains(t, write(create(2)), "apply, which waits for the server's replica: ")
	calls := map[string]func() error{
		"the same again": func() error { return write(create(2)) },
		"a mark":         func() error { return write(mark(1)) },
		"a list":         func() error { _, err := hasty.List(t.Context(), store.Query{}); return err },
	}
	for n := range 3 {
		calls["get "+gid(n)] = func() error { _, err := hasty.Get(t.Context(), gid(n)); return err }
	}
	var running sync.WaitGroup
	for name, call := range calls {
		running.Go(func() {
			if err := call(); err == nil || isRefusal(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	running.Go(func() {
		if claimed, _ := hasty.ClaimDue(t.Context(), "other", time.Minute, 10); len(claimed) > 0 {
			t.Errorf("claimed %v", claimed)
		}
	})
	running.Wait()
	if _, ok := s.dialect.(*postgresDialect); ok {
		s.requireCancelledIsUnknown(t)
	}
	servers.Resume()
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), gid(1))
		return err == nil
	}, patience, 10*time.Millisecond)
	requireApplied(t, s, create(3))
	requireVerified(t, s)
}

// requireCancelledIsUnknown cancels commits that wait, which the server then acknowledges.
func (s *Store) requireCancelledIsUnknown(t *testing.T) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Apply(t.Context(), []store.Change{create(4)})[0] }()
	for {
		s.mustExec(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		select {
		case err := <-done:
			require.ErrorIs(t, err, errUnwaited)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
