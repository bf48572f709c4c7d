package saga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/memstore"
)

// The tests of this file, in a bubble too, are about sagas without branches to
// call, which are driven by whoever waits for them.

// quiet makes such a saga.
func quiet(steps int) *saga.Saga {
	return &saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, steps)}
}

// onWrite is a model of a store on the way to which something happens to one of
// the writes, counted from 1.
func onWrite(retention time.Duration, number int64, happens func(ctx context.Context, apply func() []error) []error) *badWriter {
	var writes atomic.Int64
	return &badWriter{memstore.New(retention), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
		if writes.Add(1) != number {
			return to.Apply(ctx, changes)
		}
		changes = slices.Clone(changes) // the call may arrive late
		return happens(ctx, func() []error { return to.Apply(context.Background(), changes) })
	}}
}

func TestRun_Quiet_IsAWriteAStepAndOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		model := memstore.New(time.Hour)
		c := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			writes.Add(1)
			return to.Apply(ctx, changes)
		}}, &branches{}, unhurried())
		s := quiet(3)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustRun(t, c, s))
		require.EqualValues(t, 4, writes.Load())
		require.Equal(t, store.Marks("y-y-y-"), mustGet(t, model, s.GID).Marks)
		require.Equal(t, saga.Counters{Submitted: 1, Succeeded: 1}, c.Counters())
	})
}

// eachWrite runs a test for each write of a quiet saga of three steps after its
// creation: whether it arrives, though nobody hears of it, or not.
func eachWrite(t *testing.T, retention time.Duration, test func(t *testing.T, number int64, arrives bool)) {
	for number := int64(2); number <= 4; number++ {
		for _, arrives := range []bool{false, true} {
			t.Run(fmt.Sprintf("retention=%v/write=%d/arrives=%v", retention, number, arrives), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { test(t, number, arrives) })
			})
		}
	}
}

// A write is lost, or its answer is: it is found out which.
func TestRun_QuietAndAWriteIsLost_EndsAllTheSame(t *testing.T) {
	t.Parallel()
	for _, retention := range []time.Duration{0, time.Hour} {
		eachWrite(t, retention, func(t *testing.T, number int64, arrives bool) {
			way := onWrite(retention, number, func(_ context.Context, apply func() []error) []error {
				if arrives {
					apply()
				}
				return []error{errCut}
			})
			c := start(t, way, &branches{}, unhurried())
			s := quiet(3)
			require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustRun(t, c, s))
			require.Equal(t, saga.Counters{Submitted: 1, Succeeded: 1, StoreErrors: 1}, settled(t, c))
			if retention > 0 {
				require.Equal(t, store.Marks("y-y-y-"), mustGet(t, way, s.GID).Marks)
			}
		})
	}
}

// The client does not wait any longer for a write that hangs. The saga goes on
// without him, whether the write arrives or not.
func TestRun_QuietAndClientGivesUp_SagaGoesOn(t *testing.T) {
	t.Parallel()
	eachWrite(t, time.Hour, func(t *testing.T, number int64, arrives bool) {
		way := onWrite(time.Hour, number, func(ctx context.Context, apply func() []error) []error {
			<-ctx.Done()
			if arrives {
				time.AfterFunc(time.Second, func() { apply() })
			}
			return []error{ctx.Err()}
		})
		c := start(t, way, &branches{}, unhurried())
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the client hung up")
		time.AfterFunc(time.Second, func() { cancel(why) })
		began := time.Now()
		s := quiet(3)
		_, err := c.Run(ctx, s)
		require.ErrorIs(t, err, saga.ErrNotEnded)
		require.ErrorIs(t, err, why)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
		time.Sleep(2 * time.Second) // until all has arrived
		record := mustGet(t, way, s.GID)
		require.Equal(t, store.Marks("y-y-y-"), record.Marks)
		require.EqualValues(t, 1, record.Epoch)
		require.EqualValues(t, 1, settled(t, c).Succeeded)
	})
}

// The client gives up while the write waits behind somebody else's.
func TestRun_QuietAndClientGivesUpInTheQueue_SagaGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *saga.Coordinator
		var submitting sync.WaitGroup
		mine, other := quiet(3), quiet(1)
		goOn := make(chan struct{})
		model := memstore.New(time.Hour)
		cfg := unhurried()
		cfg.Commit.MaxBatch = 1
		c = start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			switch create, ok := changes[0].(*store.Create); {
			case !ok:
			case create.GID == mine.GID:
				submitting.Go(func() { assert.NoError(t, c.Submit(t.Context(), other)) })
				synctest.Wait() // until it is in the queue
			default:
				<-goOn
			}
			return to.Apply(ctx, changes)
		}}, &branches{}, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Run(ctx, mine)
		require.ErrorIs(t, err, saga.ErrNotEnded)
		require.Equal(t, store.Marks("------"), mustGet(t, model, mine.GID).Marks)
		close(goOn)
		submitting.Wait()
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, mine.GID).Status)
	})
}

// An abort is demanded between two writes, and the saga does not succeed.
func TestRun_QuietAndAbortIsDemanded_Fails(t *testing.T) {
	t.Parallel()
	for number := int64(2); number <= 4; number++ {
		synctest.Test(t, func(t *testing.T) {
			var c *saga.Coordinator
			s := quiet(3)
			elsewhere := memstore.New(time.Hour)
			way := onWrite(time.Hour, number, func(_ context.Context, apply func() []error) []error {
				there := start(t, elsewhere, &branches{}, unhurried())
				require.NoError(t, there.Abort(t.Context(), s.GID, "changed my mind"))
				return apply()
			})
			way.Store = elsewhere
			c = start(t, way, &branches{}, unhurried())
			require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: "changed my mind"}, mustRun(t, c, s))
		})
	}
}

// A saga of many steps on a slow store takes long: who waits is told so in time.
func TestRun_QuietAndStoreIsSlow_ObservesMaxWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := unhurried()
		cfg.MaxWait = 5 * time.Second
		const slow = 300 * time.Millisecond
		c := start(t, &badWriter{memstore.New(time.Hour), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			time.Sleep(slow)
			return to.Apply(ctx, changes)
		}}, &branches{}, cfg)
		s := quiet(100)
		began := time.Now()
		_, err := c.Run(t.Context(), s)
		require.ErrorIs(t, err, saga.ErrNotEnded)
		require.LessOrEqual(t, time.Since(began), cfg.MaxWait+2*cfg.PollInterval+2*slow)
		time.Sleep(30 * time.Second)
		require.EqualValues(t, 1, settled(t, c).Succeeded)
	})
}

// The coordinator lets go between two writes: others may go on at once.
func TestClose_WhileAQuietSagaRuns_HandsItBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *saga.Coordinator
		var closing sync.WaitGroup
		way := onWrite(time.Hour, 3, func(_ context.Context, apply func() []error) []error {
			closing.Go(func() { kill(c) })
			synctest.Wait()
			return apply()
		})
		c = start(t, way, &branches{}, unhurried())
		s := quiet(100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Run(ctx, s)
		require.ErrorIs(t, err, saga.ErrNotEnded)
		closing.Wait()
		record := mustGet(t, way, s.GID)
		require.Equal(t, store.MarkSucceeded, record.Marks.At(store.Action(1)))
		require.Equal(t, store.MarkPending, record.Marks.At(store.Action(3)))
		require.Empty(t, record.Owner)
		require.False(t, record.Due.After(time.Now()))
		next := start(t, way.Store, &branches{}, unhurried())
		require.Equal(t, store.StatusSucceeded, mustWait(t, next, s.GID).Status)
	})
}

// A store that panics may be survived by a server around the coordinator. Then
// the saga is taken over when its lease ends, and Close waits for nobody.
func TestRun_QuietAndStorePanics_IsTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := onWrite(time.Hour, 2, func(context.Context, func() []error) []error { panic("broken") })
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = 10*time.Second, time.Second
		c := start(t, way, &branches{}, cfg)
		s := quiet(2)
		require.PanicsWithValue(t, "broken", func() { _, _ = c.Run(t.Context(), s) })
		require.Zero(t, c.Counters().InFlight)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
		require.EqualValues(t, 2, mustGet(t, way, s.GID).Epoch)
		c.Close(context.Background())
	})
}
