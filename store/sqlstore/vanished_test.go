package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// A host vanishes in the middle of a call, at each of its messages: what it has
// locked is free again within the session bound, so others can claim its sagas.
// What is left of the host, were it only cut off, notices within the time of a
// call.
func TestCalls_WhoseHostVanishes_FreeTheirLocks(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const sagas = 10
		due := func(n int) store.Change {
			c := create(n)
			c.Due = -time.Second
			return c
		}
		claim := func(s *Store) error {
			_, err := s.ClaimDue(context.Background(), "gone", time.Minute, sagas)
			return err
		}
		apply := func(s *Store) error { // two marks, one of which is refused
			for _, err := range s.Apply(context.Background(), []store.Change{mark(1), mark(2), mark(sagas)}) {
				if err != nil && !isRefusal(err) {
					return err
				}
			}
			return nil
		}
		for name, tt := range map[string]struct {
			call     func(s *Store) error
			messages int // at least
		}{"claim": {claim, 4}, "apply": {apply, 4}} {
			for n := range 7 {
				t.Run(fmt.Sprint(name, n+1), func(t *testing.T) {
					t.Parallel()
					p := newProxy(t, k.server.Addr())
					cfg := hasty(k.config())
					cfg.Lease = 2 * time.Second
					s, other := open(t, p.of(cfg)), open(t, cfg)
					for _, quiet := range []*Store{s, other} { // its messages would count
						quiet.stopSweeping()
						quiet.sweeping.Wait()
					}
					var creates []store.Change
					for n := range sagas {
						creates = append(creates, due(n))
					}
					require.NoError(t, tt.call(s)) // which prepares statements
					requireApplied(t, other, creates...)

					p.vanishAt(n + 1)
					began := time.Now()
					err := tt.call(s)
					if !p.vanished() {
						require.NoError(t, err)
						require.GreaterOrEqual(t, n, tt.messages)
						return
					}
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Less(t, time.Since(began), 2*cfg.Timeout)

					var free []string
					require.Eventually(t, func() bool {
						claimed, err := other.ClaimDue(t.Context(), "other", time.Minute, sagas)
						require.NoError(t, err)
						for _, r := range claimed {
							free = append(free, r.GID)
						}
						return len(free) == sagas
					}, patience, 10*time.Millisecond)
					require.Less(t, time.Since(began), cfg.sessionBound()+cfg.Timeout+2*time.Second)
					slices.Sort(free)
					require.Len(t, slices.Compact(free), sagas)
				})
			}
		}
	})
}

// A host vanishes while the server is sending to it, more than there is room for
// on the way.
func TestCalls_WhoseHostVanishesAsItReads_FreeTheirLocks(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		p := newProxy(t, k.server.Addr())
		cfg := k.config()
		cfg.Lease = 2 * time.Second
		s, other := open(t, p.of(cfg)), open(t, cfg)
		var creates []store.Change
		for n := range 40 {
			creates = append(creates, create(n))
		}
		requireApplied(t, s, creates...)
		tx := s.db.Begin()
		rows, err := tx.Raw("SELECT REPEAT('x', 2000000) FROM saga FOR UPDATE").Rows()
		require.NoError(t, err)
		defer func() {
			p.cutAll() // or each would wait for an answer
			rows.Close()
			tx.Rollback()
		}()
		require.True(t, other.isLocked(t, gid(0)))
		defer p.stall()()
		began := time.Now()
		require.Eventually(t, func() bool { return !other.isLocked(t, gid(0)) }, patience, 50*time.Millisecond)
		require.Less(t, time.Since(began), 3*cfg.sessionBound())
	})
}

// Connections that nobody has used for some time still work: the store closes them
// before the server does.
func TestCalls_AfterAPause_Work(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		cfg.Lease = 2 * time.Second
		s := open(t, cfg)
		s.stopSweeping()
		s.sweeping.Wait()
		require.Zero(t, s.lostConns(t)) // all are open
		pool, err := s.db.DB()
		require.NoError(t, err)
		if k.name == "mysql" {
			require.Eventually(t, func() bool { return pool.Stats().MaxIdleTimeClosed == int64(cfg.Conns) }, patience, 10*time.Millisecond)
		}
		require.Zero(t, s.lostConns(t))
	})
}
