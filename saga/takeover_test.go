package saga_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// One coordinator loses its way to the store in the middle of its sagas, with
// its writes on the way. Another finishes them when the leases have ended. When
// the writes of the first arrive they are refused.
func TestTakeover_OwnerComesBackTooLate(t *testing.T) {
	onStores(t, time.Hour, ownerComesBackTooLate)
}

func ownerComesBackTooLate(t *testing.T, open opener) {
	const sagas = 20
	cfg := patient()
	cfg.Lease, cfg.RequestTimeout = 15*time.Second, 7*time.Second // no call may be repeated, also where a disk stalls
	cfg.Commit.Timeout = time.Minute                              // what is late is written nevertheless
	var away atomic.Bool
	back := make(chan struct{})
	var refused atomic.Int64
	way := &link{
		Store: open(),
		before: func(context.Context) error {
			if away.Load() {
				<-back
			}
			return nil
		},
		saw: func(errs []error) {
			for _, err := range errs {
				if errors.Is(err, store.ErrConflict) {
					refused.Add(1)
				}
			}
		},
	}
	first := blocking(store.Action(1))
	a := start(t, way, first, cfg)
	var all []*saga.Saga
	var submits sync.WaitGroup
	for range sagas {
		s := newSaga(3)
		all = append(all, s)
		submits.Go(func() { assert.NoError(t, a.Submit(t.Context(), s)) })
	}
	submits.Wait()
	for range sagas {
		<-first.called
	}
	away.Store(true)
	close(first.goOn) // all answer, and it does not get through

	second := &branches{}
	s := open()
	b := start(t, s, second, cfg)
	for _, one := range all {
		require.Equal(t, store.StatusSucceeded, mustWait(t, b, one.GID).Status)
	}
	require.Equal(t, saga.Counters{Recovered: sagas, Succeeded: sagas}, settled(t, b))

	close(back)
	counters := settled(t, a)
	require.EqualValues(t, sagas, counters.Lost)
	require.Zero(t, counters.Succeeded)
	require.EqualValues(t, sagas, refused.Load(), "late writes reached the store")
	for _, one := range all {
		require.Equal(t, []string{"a0", "a1"}, first.of(one.GID))
		require.Equal(t, []string{"a1", "a2"}, second.of(one.GID))
		record := mustGet(t, s, one.GID)
		require.Equal(t, store.StatusSucceeded, record.Status)
		require.Equal(t, b.Owner(), record.Owner)
		require.EqualValues(t, 2, record.Epoch)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustWait(t, a, one.GID))
	}
	verify(t, s)
}

// verify lets a store check its own books. Nobody else may be using it.
func verify(t *testing.T, s store.Store) {
	t.Helper()
	findings, err := s.(store.Verifier).Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}

// What a dead coordinator left is shared by those that live, no saga is run
// twice, and none runs more at a time than it is allowed.
func TestTakeover_Backlog_IsSharedWithinBounds(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		const sagas, bound = 200, 3
		s := open()
		for i := range sagas {
			create(t, s, fmt.Sprint("left-", i), `{"steps":[{"action":"http://a","compensate":"http://b"},{"action":"http://c"}]}`, 2)
		}
		cfg := patient()
		cfg.MaxRecovering = bound
		var mu sync.Mutex
		var all []*branches
		var coordinators []*saga.Coordinator
		for range 2 {
			running, most := 0, 0
			mine := refusing(1)
			answer := mine.answer
			mine.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				defer func() {
					mu.Lock()
					running--
					mu.Unlock()
				}()
				return answer(ctx, c)
			}
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				require.LessOrEqual(t, most, bound)
			})
			all = append(all, mine)
			way := &claimer{open(), func(_ []store.Record, limit int) {
				assert.LessOrEqual(t, limit, bound, "more is claimed than may be run")
			}}
			coordinators = append(coordinators, start(t, way, mine, cfg))
		}
		for i := range sagas {
			require.Equal(t, store.StatusFailed, mustWait(t, coordinators[i%2], fmt.Sprint("left-", i)).Status)
		}
		for i := range sagas {
			gid := fmt.Sprint("left-", i)
			calls := append(all[0].of(gid), all[1].of(gid)...)
			require.Equal(t, []string{"a0", "a1", "c0"}, calls)
		}
		total := settled(t, coordinators[0]).Recovered + settled(t, coordinators[1]).Recovered
		require.EqualValues(t, sagas, total)
	})
}
