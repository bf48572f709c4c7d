//go:build linux

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// hasty is a configuration under which a call that gets no answer ends soon, and one
// that does has the time for it on a machine full of other tests.
func hasty(cfg Config) Config {
	cfg.Timeout, cfg.Conns = 3*time.Second, 4
	cfg.Lease = time.Minute // the server does not end the call before that
	return cfg
}

// requireInTime makes calls of every kind, more than there are connections, and
// checks that each ends with an error, and soon.
func requireInTime(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background() // that never ends
	calls := map[string]func() error{
		"apply": func() error { return s.Apply(ctx, []store.Change{mark(1), mark(2), create(3)})[0] },
		"get":   func() error { _, err := s.Get(ctx, gid(1)); return err },
		"list":  func() error { _, err := s.List(ctx, store.Query{}); return err },
		"claim": func() error { _, err := s.ClaimDue(ctx, "me", time.Minute, 10); return err },
		"stats": func() error { _, err := s.Stats(ctx); return err },
		"reads": func() error { _, err := s.Settings(ctx); return err },
	}
	var running sync.WaitGroup
	for name, call := range calls {
		for range 2 {
			running.Go(func() {
				began := time.Now()
				err := call()
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > patience {
					t.Errorf("%s: %v, after %v", name, err, took)
				}
			})
		}
	}
	running.Wait()
}

// The server stops, and goes on later: calls do not wait for it.
func TestCalls_WhileTheServerIsStopped_EndInTime(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		server := k.own(t, k.quick)
		s := open(t, hasty(configOf(server)))
		requireApplied(t, s, create(1), create(2))
		goOn := k.stop(t, server, s)
		requireInTime(t, s)
		goOn()
		requireMended(t, s, s.cfg.Conns)
		requireVerified(t, s)
	})
}

// stop stops all processes of a server with SIGSTOP until goOn is called.
func (k *kind) stop(t *testing.T, server *lab.Server, s *Store) (goOn func()) {
	t.Helper()
	pids := []int{server.PID()}
	if k.name == "postgres" { // a process for each session, and some more
		sessions, err := sqlconn.Query(t.Context(), s.db, "SELECT pid FROM pg_stat_activity", nil, func(pid *int) []any { return []any{pid} })
		require.NoError(t, err)
		pids = append(pids, sessions...)
	}
	goOn = sync.OnceFunc(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	t.Cleanup(goOn) // or it could not be asked to end
	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	// Each thread stops when it is next about to run.
	require.Eventually(t, func() bool { return !slices.ContainsFunc(pids, runs) }, patience, time.Millisecond)
	return goOn
}

// runs reports whether a thread of a process has not been stopped yet.
func runs(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(tasks, func(task string) bool {
		stat, err := os.ReadFile(task)
		_, state, _ := strings.Cut(string(stat), ") ") // behind the name
		return err == nil && !strings.HasPrefix(state, "T")
	})
}

// The server is gone and nothing says so; another has taken its place. Whatever
// was begun with the first must not keep the store from the second.
func TestCalls_AfterTheServerWasReplaced_Work(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		p := newProxy(t, k.server.Addr())
		s := open(t, hasty(p.of(k.config())))
		requireApplied(t, s, create(1), create(2))
		p.Stall()
		requireInTime(t, s)
		p.Replace()
		// Some were being made, and some idle.
		requireMended(t, s, 2*s.cfg.Conns)
	})
}
