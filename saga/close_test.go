package saga_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/store"
)

func TestClose_WaitsForSagasUnderWay(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := blocking()
		s := open()
		c := start(t, s, all, patient())
		first := newSaga(2)
		require.NoError(t, c.Submit(t.Context(), first))
		<-all.called
		closed := make(chan struct{})
		go func() {
			c.Close(context.Background())
			close(closed)
		}()
		until(t, "no more sagas are taken up", func() bool {
			return errors.Is(c.Submit(t.Context(), newSaga(1)), store.ErrClosed)
		})
		late := newSaga(1)
		err := c.Submit(t.Context(), late)
		require.ErrorIs(t, err, store.ErrClosed)
		require.NotErrorIs(t, err, saga.ErrUnknown)
		_, err = s.Get(t.Context(), late.GID)
		require.ErrorIs(t, err, store.ErrNotFound, "it was refused, and yet written")
		select {
		case <-closed:
			t.Fatal("closed with a saga under way")
		default:
		}
		close(all.goOn)
		<-closed
		require.Equal(t, store.StatusSucceeded, mustGet(t, s, first.GID).Status)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, first.GID).Status, "waiting needs no running coordinator")
		require.ErrorIs(t, c.Submit(t.Context(), late), store.ErrClosed)
	})
}

// When the deadline ends the leases are given back, for when the calls must have
// ended: with leases of an hour, nobody could take the sagas over otherwise.
func TestClose_DeadlineEnds_OthersTakeOver(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		const sagas = 20
		stuck := blocking(store.Action(1))
		cfg := patient()
		cfg.RequestTimeout = 4 * time.Second // all must be under way within it
		cfg.RetryInterval = time.Hour        // nor does it help to be put off
		first := start(t, open(), stuck, cfg)
		var all []*saga.Saga
		var submits sync.WaitGroup
		for range sagas {
			s := newSaga(3)
			all = append(all, s)
			submits.Go(func() { assert.NoError(t, first.Submit(t.Context(), s)) })
		}
		submits.Wait()
		for range sagas {
			<-stuck.called
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		first.Close(ctx)
		require.Less(t, time.Since(began), patience/2)
		counters := first.Counters()
		require.Zero(t, counters.Lost, "they were not lost, but handed back")
		require.Zero(t, counters.InFlight)

		next := &branches{}
		second := start(t, open(), next, patient())
		for _, s := range all {
			require.Equal(t, store.StatusSucceeded, mustWait(t, second, s.GID).Status)
			require.Equal(t, []string{"a0", "a1"}, stuck.of(s.GID))
			require.Equal(t, []string{"a1", "a2"}, next.of(s.GID), "what was marked is not called again")
		}
	})
}

func TestClose_Idle_ReturnsAtOnce(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		c := start(t, open(), &branches{}, patient())
		var all sync.WaitGroup
		for range 4 { // at the same time, too
			all.Go(func() { c.Close(context.Background()) })
		}
		all.Wait()
	})
}

// While a coordinator is closed again and again under load, every saga that was
// acknowledged ends, and each of its branches is called as if nothing had been.
func TestClose_UnderLoad_LosesNothing(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := refusing(2)
		s := open()
		var accepted sync.Map
		for range 5 {
			c := start(t, s, all, patient())
			var clients sync.WaitGroup
			for range 16 {
				clients.Go(func() {
					for range 200 {
						next := newSaga(3)
						switch err := c.Submit(t.Context(), next); {
						case err == nil:
							accepted.Store(next.GID, true)
						default:
							assert.ErrorIs(t, err, store.ErrClosed)
							return
						}
					}
				})
			}
			until(t, "some have ended", func() bool { return c.Counters().Failed > 20 })
			kill(c)
			clients.Wait()
		}
		last := start(t, s, all, patient())
		accepted.Range(func(gid, _ any) bool {
			require.Equal(t, store.StatusFailed, mustWait(t, last, gid.(string)).Status)
			return true
		})
		accepted.Range(func(gid, _ any) bool {
			requireOrder(t, all.of(gid.(string)), []string{"a0", "a1", "a2", "c2", "c1", "c0"})
			return true
		})
	})
}

// requireOrder checks that the calls are those of want, in their order; each may
// be repeated, but not once a later one was made.
func requireOrder(t *testing.T, calls, want []string) {
	t.Helper()
	at := 0
	for _, call := range calls {
		if at == len(want) || call != want[at] {
			require.Positive(t, at, "%v, want %v", calls, want)
			require.Equal(t, want[at-1], call, "%v, want %v", calls, want)
			continue
		}
		at++
	}
	require.Equal(t, len(want), at, "%v, want %v", calls, want)
}

func TestStoreClosed_UnderneathACoordinator(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := blocking()
		s := open()
		c := start(t, s, all, patient())
		ended := make(chan error, 1)
		go func() {
			_, err := c.Run(within(t, patience), newSaga(3))
			ended <- err
		}()
		<-all.called
		require.NoError(t, s.Close())
		close(all.goOn)
		require.ErrorIs(t, <-ended, store.ErrClosed)
		require.ErrorIs(t, c.Submit(t.Context(), newSaga(1)), store.ErrClosed)
		_, err := c.Wait(t.Context(), saga.NewGID())
		require.ErrorIs(t, err, store.ErrClosed)
		require.EqualValues(t, 1, settled(t, c).Lost)
		began := time.Now()
		c.Close(context.Background())
		require.Less(t, time.Since(began), patience/2)
	})
}
