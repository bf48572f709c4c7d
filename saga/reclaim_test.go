package saga_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// The tests of this file are about sagas whose lease ends while they run, so that
// their own coordinator, or another, claims them underneath their run.

// overdue makes a saga due now, as if its lease had ended.
func overdue(t *testing.T, s store.Store, gid string) {
	t.Helper()
	record := mustGet(t, s, gid)
	require.NoError(t, s.Apply(t.Context(), []store.Change{&store.Transition{
		GID: gid, Epoch: record.Epoch, From: record.Status, To: record.Status, Due: -1,
	}})[0])
}

// A coordinator that claims what it is running does not run it twice: neither at
// the same time, nor under the epoch that has passed.
func TestReclaim_OfARunningSaga_IsNotRunTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		all := blocking(store.Action(1))
		c := start(t, model, all, unhurried())
		s := newSaga(3)
		require.NoError(t, c.Submit(t.Context(), s))
		<-all.called
		for epoch := uint32(2); epoch <= 4; epoch++ {
			overdue(t, model, s.GID)
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
			require.Equal(t, epoch, mustGet(t, model, s.GID).Epoch, "it was claimed")
			require.Equal(t, []string{"a0", "a1"}, all.of(s.GID))
			require.EqualValues(t, 1, c.Counters().InFlight)
		}
		close(all.goOn)
		synctest.Wait()
		require.Equal(t, []string{"a0", "a1"}, all.of(s.GID), "the run is over: its epoch has passed")
		require.EqualValues(t, 1, c.Counters().Lost)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
		require.Equal(t, []string{"a0", "a1", "a1", "a2"}, all.of(s.GID))
		require.EqualValues(t, 1, c.Counters().Recovered)
	})
}

// The answer to a write is lost, and before that is looked into the coordinator
// claims the saga itself: what it finds is as it wrote it, and its own, and yet
// another run's.
func TestReclaim_BetweenALostAnswerAndTheLook_EndsTheOlderRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		var lost atomic.Bool
		way := &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			change, ok := changes[0].(*store.Transition)
			switch {
			case !ok:
				return to.Apply(ctx, changes)
			case change.Release: // it cannot be handed back either
				return all(errCut, changes)
			}
			errs := to.Apply(ctx, changes)
			if lost.CompareAndSwap(false, true) {
				overdue(t, model, change.GID)
				return all(errCut, changes)
			}
			return errs
		}}
		cfg := unhurried()
		cfg.PollInterval, cfg.Lease = time.Millisecond, time.Minute
		branches := &branches{}
		c := start(t, way, branches, cfg)
		s := newSaga(3)
		require.NoError(t, c.Submit(t.Context(), s))
		time.Sleep(30 * time.Second)
		record := mustGet(t, model, s.GID)
		require.EqualValues(t, 2, record.Epoch)
		require.Equal(t, c.Owner(), record.Owner)
		require.Equal(t, []string{"a0"}, branches.of(s.GID))
		require.EqualValues(t, 1, settled(t, c).Lost)
		_, err := c.Wait(t.Context(), s.GID)
		require.NoError(t, err)
		require.Equal(t, []string{"a0", "a1", "a2"}, branches.of(s.GID))
	})
}

// Every claim of a saga that runs here frees the slot that it was to have.
func TestReclaim_MoreOftenThanThereAreSlots_RecoveryGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		all := blocking(store.Action(1))
		cfg := unhurried()
		cfg.MaxRecovering = 2
		c := start(t, model, all, cfg)
		s := newSaga(2)
		require.NoError(t, c.Submit(t.Context(), s))
		<-all.called
		for range 2 * cfg.MaxRecovering {
			overdue(t, model, s.GID)
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
		}
		require.EqualValues(t, 1+2*cfg.MaxRecovering, mustGet(t, model, s.GID).Epoch)
		create(t, model, "left", `{"steps":[{"action":"http://a"}]}`, 1)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, "left").Status)
		close(all.goOn)
	})
}

// The answer to a second submit is lost. What is found of the saga is from before
// it was put off, and taken over elsewhere: it must not be called here.
func TestSubmit_StaleLookAfterALostAnswer_CallsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		var lose atomic.Bool
		way := &slowReader{delay: time.Minute, badWriter: &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			errs := to.Apply(ctx, changes)
			if _, ok := changes[0].(*store.Create); ok && lose.Load() {
				return all(errCut, changes)
			}
			return errs
		}}}
		here := blocking()
		here.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			here.called <- c
			<-here.goOn
			return machine.Ongoing, "not yet"
		}
		cfg := unhurried()
		cfg.RetryInterval, cfg.PollInterval = 10*time.Second, 30*time.Minute
		a := start(t, way, here, cfg)
		s := newSaga(2)
		require.NoError(t, a.Submit(t.Context(), s))
		<-here.called
		lose.Store(true)
		again := make(chan error, 1)
		go func() { again <- a.Submit(t.Context(), s) }()
		synctest.Wait() // it has looked, and the answer is on its way
		close(here.goOn)
		synctest.Wait()
		require.EqualValues(t, 1, a.Counters().Deferred)

		there := blocking()
		start(t, model, there, unhurried())
		<-there.called
		require.NoError(t, <-again)
		time.Sleep(2 * way.delay)
		require.Equal(t, []string{"a0"}, here.of(s.GID))
		require.EqualValues(t, 1, a.Counters().Lost, "it was begun, and found out")
		close(there.goOn)
	})
}

// A saga moves on between the look of whoever demands an abort and its write.
func TestAbort_SagaMovesMeanwhile_Succeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		cfg := unhurried()
		cfg.Lease = time.Minute
		gone := blocking()
		dead := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			return to.Apply(ctx, changes)
		}}, gone, cfg)
		s := newSaga(2)
		require.NoError(t, dead.Submit(t.Context(), s))
		<-gone.called
		moves := 0
		branches := &branches{}
		cfg.PollInterval = time.Hour
		c := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			if change, ok := changes[0].(*store.Transition); ok && change.From == store.StatusSubmitted && moves < 3 {
				moves++
				overdue(t, model, s.GID)
				_, err := model.ClaimDue(ctx, "other", time.Minute, 1)
				require.NoError(t, err)
			}
			return to.Apply(ctx, changes)
		}}, branches, cfg)
		require.NoError(t, c.Abort(t.Context(), s.GID, "now"))
		require.Equal(t, 3, moves)
		record := mustGet(t, model, s.GID)
		require.Equal(t, store.StatusAborting, record.Status)
		require.EqualValues(t, 4, record.Epoch)
	})
}

// An abort does not wait for a long call, but for what that call stands in the way
// of; a forced stop waits for nothing.
func TestDemand_DuringALongCall_TakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := blocking(store.Action(0))
		c := start(t, memstore.New(time.Hour), all, unhurried())
		s := newSaga(3)
		s.Concurrent, s.Steps[2].After = true, []int{0}
		told := runs(t, c, s)
		<-all.called
		synctest.Wait()
		require.NoError(t, c.Abort(t.Context(), s.GID, "changed my mind"))
		synctest.Wait()
		require.ElementsMatch(t, []string{"a0", "a1", "c1"}, all.of(s.GID), "step 0 is still being done")
		require.Empty(t, told)

		require.NoError(t, c.ForceStop(t.Context(), s.GID, "by hand"))
		synctest.Wait()
		select {
		case got := <-told:
			require.NoError(t, got.err)
			require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: "stopped by force, without compensation: by hand"}, got.result)
		default:
			t.Fatal("it waits for the call")
		}
		require.ElementsMatch(t, []string{"a0", "a1", "c1"}, all.of(s.GID))
	})
}

// Who gives up waiting leaves nothing behind.
func TestWait_GivenUp_IsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		cfg := unhurried()
		cfg.PollInterval = time.Hour
		create(t, model, "elsewhere", `{"steps":[{"action":"http://a"}]}`, 1)
		_, err := model.ClaimDue(t.Context(), "other", time.Hour, 1)
		require.NoError(t, err)
		c := start(t, model, &branches{}, cfg)
		ctx, giveUp := context.WithCancel(t.Context())
		gone := make(chan error, 20)
		for range cap(gone) {
			go func() {
				_, err := c.Wait(ctx, "elsewhere")
				gone <- err
			}()
		}
		synctest.Wait()
		require.Equal(t, 1, saga.RegistrySize(c))
		giveUp()
		for range cap(gone) {
			require.ErrorIs(t, <-gone, saga.ErrNotEnded)
		}
		require.Zero(t, saga.RegistrySize(c))
		_, err = c.Wait(t.Context(), "nobody")
		require.True(t, errors.Is(err, store.ErrNotFound))
		mustRun(t, c, newSaga(1))
		require.Zero(t, saga.RegistrySize(c))
		require.NoError(t, c.Submit(t.Context(), newSaga(1)), "nobody waits")
		synctest.Wait()
		require.Zero(t, saga.RegistrySize(c))
	})
}

// A step's own timeout goes before that of its saga, and that before the
// coordinator's.
func TestCall_TimeoutsOfStepAndSaga_TheNearestWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := map[string]time.Duration{}
		all := &branches{}
		all.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			end, ok := ctx.Deadline()
			require.True(t, ok)
			limits[c.GID+" "+label(c.Branch)] = time.Until(end)
			return machine.Succeeded, ""
		}
		c := start(t, memstore.New(time.Hour), all, calledFor(3*time.Second))
		both, none := newSaga(3), newSaga(1)
		both.RequestTimeout = 5 * time.Second
		both.Steps[0].Timeout, both.Steps[1].Timeout = 2*time.Second, 8*time.Second
		mustRun(t, c, both)
		mustRun(t, c, none)
		require.Equal(t, map[string]time.Duration{
			both.GID + " a0": 2 * time.Second, both.GID + " a1": 8 * time.Second, both.GID + " a2": 5 * time.Second,
			none.GID + " a0": 3 * time.Second,
		}, limits)
	})
}
