package saga_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// However many come at once, so many are accepted as may be under way; of the
// others nothing is written.
func TestSubmit_BeyondMaxInFlight_IsRefusedBeforeAnythingIsWritten(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		const most, clients = 8, 50
		s := struct{ store.Store }{open()} // in one partition; TestSubmit_OnePartitionLeavesRoomToTheOthers has several
		at := blocking()
		cfg := patient()
		cfg.MaxInFlight = most
		c := start(t, s, at, cfg)
		var accepted sync.Map
		var refused atomic.Int64
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				sg := newSaga(1)
				switch err := c.Submit(t.Context(), sg); {
				case err == nil:
					accepted.Store(sg.GID, true)
				default:
					assert.ErrorIs(t, err, saga.ErrBusy)
					assert.ErrorContains(t, err, "coordinator.max_in_flight")
					refused.Add(1)
					_, err := s.Get(t.Context(), sg.GID)
					assert.ErrorIs(t, err, store.ErrNotFound)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, clients-most, refused.Load())
		require.EqualValues(t, clients-most, c.Counters().Refused)
		_, err := c.Run(t.Context(), newSaga(1))
		require.ErrorIs(t, err, saga.ErrBusy)

		close(at.goOn)
		accepted.Range(func(gid, _ any) bool {
			require.Equal(t, store.StatusSucceeded, mustWait(t, c, gid.(string)).Status)
			return true
		})
		// Whatever becomes of a submit, it makes room for another.
		until(t, "there is room again", func() bool { return c.Counters().InFlight == 0 })
		again := newSaga(1)
		for range 3 * most {
			require.NoError(t, c.Submit(t.Context(), again))
			require.ErrorIs(t, c.Submit(t.Context(), other(again)), store.ErrExists)
			require.ErrorIs(t, c.Submit(t.Context(), &saga.Saga{GID: "no steps"}), store.ErrInvalid)
			mustRun(t, c, newSaga(1))
		}
	})
}

// A saga that waits in the store is not under way.
func TestSubmit_ADeferredSagaTakesNoRoom(t *testing.T) {
	cfg := patient()
	cfg.MaxInFlight, cfg.RetryInterval, cfg.MaxRetryInterval = 1, time.Hour, time.Hour
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		undecided := &branches{answer: func(context.Context, saga.Call) (machine.Outcome, string) { return machine.Ongoing, "not yet" }}
		c := start(t, open(), undecided, cfg)
		for range 5 {
			until(t, "there is room", func() bool { return c.Counters().InFlight == 0 })
			require.Eventually(t, func() bool { return c.Submit(t.Context(), newSaga(1)) == nil }, patience, time.Millisecond)
		}
	})
}

// A concurrent saga calls all its branches at once.
func TestSubmit_AConcurrentSagaCountsForEachStep(t *testing.T) {
	t.Parallel()
	cfg := patient()
	cfg.MaxInFlight = 10
	at := blocking()
	c := start(t, memstore.New(time.Hour), at, cfg)
	concurrent := func(steps int) *saga.Saga {
		s := newSaga(steps)
		s.Concurrent = true
		return s
	}
	first := concurrent(6)
	require.NoError(t, c.Submit(t.Context(), first))
	require.ErrorIs(t, c.Submit(t.Context(), concurrent(5)), saga.ErrBusy)
	second := concurrent(4)
	require.NoError(t, c.Submit(t.Context(), second))
	require.ErrorIs(t, c.Submit(t.Context(), newSaga(1)), saga.ErrBusy)
	close(at.goOn)
	for _, s := range []*saga.Saga{first, second} {
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
	}
	// One that is larger than all that may be under way runs by itself.
	large := concurrent(20)
	until(t, "there is room for it", func() bool { return c.Submit(t.Context(), large) == nil })
	require.Equal(t, store.StatusSucceeded, mustWait(t, c, large.GID).Status)
}

// Large sagas are held in memory while they are under way.
func TestSubmit_ALargeSagaCountsForSeveral(t *testing.T) {
	t.Parallel()
	cfg := patient()
	cfg.MaxInFlight = 100
	at := blocking()
	c := start(t, memstore.New(time.Hour), at, cfg)
	large := func() *saga.Saga {
		s := newSaga(2)
		s.Steps[0].Payload = `"` + strings.Repeat("x", saga.MaxPayloadBytes-2) + `"`
		s.Steps[1].Payload = s.Steps[0].Payload
		return s
	}
	first := []*saga.Saga{large()} // 65
	for _, s := range first {
		require.NoError(t, c.Submit(t.Context(), s))
	}
	require.ErrorIs(t, c.Submit(t.Context(), large()), saga.ErrBusy)
	require.NoError(t, c.Submit(t.Context(), newSaga(1)))
	close(at.goOn)
	for _, s := range first {
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
	}
	until(t, "there is room again", func() bool { return c.Submit(t.Context(), large()) == nil })
}

// halves is a store on two servers: sagas whose gid ends in "-0" are on the first.
type halves struct{ *memstore.Store }

func (halves) Partitions() int { return 2 }

func (halves) PartitionOf(gid string) int {
	if strings.HasSuffix(gid, "-0") {
		return 0
	}
	return 1
}

// However many sagas of one server of the store are under way, there is room for those of
// the other.
func TestSubmit_OnePartitionLeavesRoomToTheOthers(t *testing.T) {
	t.Parallel()
	const most = 400
	at := blocking()
	cfg := patient()
	cfg.MaxInFlight = most
	c := start(t, halves{memstore.New(time.Hour)}, at, cfg)
	submit := func(of string) (accepted int) {
		for range 2 * most {
			sg := newSaga(1)
			sg.GID += of
			if err := c.Submit(t.Context(), sg); err == nil {
				accepted++
			} else {
				require.ErrorIs(t, err, saga.ErrBusy)
			}
		}
		return accepted
	}
	require.Equal(t, most*3/4, submit("-1"))
	require.Equal(t, most*3/16, submit("-0"), "three quarters of what is left")
	require.Zero(t, submit("-1"))
	close(at.goOn)
	sg := newSaga(1)
	sg.Concurrent, sg.GID = true, sg.GID+"-1"
	for range 2 * most {
		sg.Steps = append(sg.Steps, sg.Steps[0])
	}
	until(t, "one as heavy as all is alone", func() bool {
		_, err := c.Run(t.Context(), sg)
		require.True(t, err == nil || errors.Is(err, saga.ErrBusy), err)
		return err == nil
	})
}
