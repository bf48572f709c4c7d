package saga_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// The tests of this file run in a bubble, on the model of a store: they are
// about times that nobody wants to wait for.

// unhurried is patient with the pauses of the default: there is time.
func unhurried() saga.Config {
	cfg := patient()
	cfg.PollInterval, cfg.RetryInterval = saga.DefaultConfig().PollInterval, saga.DefaultConfig().RetryInterval
	return cfg
}

// badWriter is a store whose Apply goes through a hook, and nothing else.
type badWriter struct {
	store.Store
	apply func(ctx context.Context, changes []store.Change, to store.Applier) []error
}

func (w *badWriter) Apply(ctx context.Context, changes []store.Change) []error {
	return w.apply(ctx, changes, w.Store)
}

func all(err error, changes []store.Change) []error {
	errs := make([]error, len(changes))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// A full disk, or a Redis out of memory, answers reads and refuses writes. It
// is asked again, but less and less often.
func TestRun_StoreRefusesWrites_IsNotHammered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		var refused atomic.Int64
		way := &badWriter{memstore.New(time.Hour), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			if !full.Load() {
				return to.Apply(ctx, changes)
			}
			refused.Add(1)
			return all(errors.New("no space left on device"), changes)
		}}
		branches := blocking()
		c := start(t, way, branches, unhurried())
		s := newSaga(2)
		require.NoError(t, c.Submit(t.Context(), s))
		<-branches.called
		full.Store(true)
		close(branches.goOn)
		time.Sleep(2 * time.Minute)
		require.Less(t, refused.Load(), int64(130), "in two minutes, for one saga")
		require.EqualValues(t, refused.Load(), c.Counters().StoreErrors+1)
		full.Store(false)
		began := time.Now()
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
		require.Less(t, time.Since(began), 5*time.Second)
		require.Equal(t, []string{"a0", "a1"}, branches.of(s.GID), "none was called again")
	})
}

// A call begins only when it must end before the lease does, also if the store
// takes as long as a lease to answer.
func TestLease_OutlastsEveryCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = 2*time.Second, 900*time.Millisecond
		// For a while the answers to writes are late, later some do not arrive.
		var writes atomic.Int64
		model := memstore.New(time.Hour)
		way := &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			n := writes.Add(1)
			if n > 20 && n%3 > 0 {
				return all(errCut, changes)
			}
			errs := to.Apply(ctx, changes)
			if 4 <= n && n <= 12 {
				time.Sleep(time.Duration(2+n) * 150 * time.Millisecond)
			}
			return errs
		}}
		branches := &branches{answer: func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			record := mustGet(t, model, c.GID)
			end, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.False(t, end.After(record.Due), "the lease ends in %v, the call in %v", time.Until(record.Due), time.Until(end))
			time.Sleep(300 * time.Millisecond)
			return machine.Succeeded, ""
		}}
		c := start(t, way, branches, cfg)
		s := newSaga(20)
		result, err := c.Run(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, result.Status)
		require.Greater(t, writes.Load(), int64(22), "it was renewed")
	})
}

// The lease of a saga that is taken over begins when it is asked for, not when
// the answer is there.
func TestLease_OfASagaTakenOver_OutlastsItsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = 2*time.Second, 900*time.Millisecond
		model := memstore.New(time.Hour)
		create(t, model, "left", `{"steps":[{"action":"http://a"}]}`, 1)
		branches := &branches{answer: func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			end, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.False(t, end.After(mustGet(t, model, c.GID).Due))
			return machine.Succeeded, ""
		}}
		c := start(t, &claimer{model, func([]store.Record, int) { time.Sleep(1500 * time.Millisecond) }}, branches, cfg)
		result, err := c.Wait(t.Context(), "left")
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, result.Status)
		require.Equal(t, []string{"a0"}, branches.of("left"))
	})
}

// A saga that takes many times its lease stays with its owner, who renews it.
func TestLease_OfALongSaga_IsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = 10*time.Second, 3*time.Second
		model := memstore.New(time.Hour)
		branches := &branches{answer: func(context.Context, saga.Call) (machine.Outcome, string) {
			time.Sleep(2999 * time.Millisecond)
			return machine.Succeeded, ""
		}}
		a, b := start(t, model, branches, cfg), start(t, model, branches, cfg)
		s := newSaga(100)
		result, err := a.Run(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, result.Status)
		require.Len(t, branches.of(s.GID), 100)
		require.Zero(t, a.Counters().Recovered+b.Counters().Recovered)
		require.EqualValues(t, 1, mustGet(t, model, s.GID).Epoch)
	})
}

// While the store is away leases end. When it is back, a coordinator that finds
// its own running sagas due must not keep them from going on for another lease.
func TestTakeover_OfOurOwn_DoesNotWaitForALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = time.Minute, time.Second
		branches := blocking(store.Action(1))
		c := start(t, &link{Store: memstore.New(time.Hour), before: func(context.Context) error {
			if away.Load() {
				return errCut
			}
			return nil
		}}, branches, cfg)
		s := newSaga(3)
		require.NoError(t, c.Submit(t.Context(), s))
		<-branches.called
		away.Store(true)
		close(branches.goOn)
		time.Sleep(10 * cfg.Lease)
		away.Store(false)
		back := time.Now()
		result, err := c.Wait(t.Context(), s.GID)
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, result.Status)
		require.Less(t, time.Since(back), 10*time.Second)
		require.LessOrEqual(t, len(branches.of(s.GID)), 4, "at most one call again")
	})
}

// When a coordinator lets go, the call under way is cut off. If it answers all
// the same that counts, and no further one is begun.
func TestClose_CallAnswersAllTheSame_IsTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		branches := &branches{answer: func(context.Context, saga.Call) (machine.Outcome, string) {
			time.Sleep(time.Second) // and no look at the context
			return machine.Succeeded, ""
		}}
		c := start(t, model, branches, unhurried())
		s := newSaga(10)
		require.NoError(t, c.Submit(t.Context(), s))
		time.Sleep(3500 * time.Millisecond)
		kill(c)
		require.Equal(t, []string{"a0", "a1", "a2", "a3"}, branches.of(s.GID))
		record := mustGet(t, model, s.GID)
		require.Equal(t, store.Marks("y-y-y-y-------------"), record.Marks)
		require.False(t, record.Due.After(time.Now()), "others may take it over")
	})
}

// What is being claimed when the coordinator is closed is handed back at once.
func TestClose_ClaimUnderWay_IsHandedBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		create(t, model, "left", `{"steps":[{"action":"http://a"}]}`, 1)
		branches := &branches{}
		cfg := unhurried()
		cfg.RetryInterval = time.Hour
		c := start(t, &claimer{model, func(records []store.Record, _ int) { time.Sleep(time.Second) }}, branches, cfg)
		time.Sleep(500 * time.Millisecond)
		require.EqualValues(t, 2, mustGet(t, model, "left").Epoch)
		c.Close(t.Context())
		require.Empty(t, branches.of("left"))
		require.False(t, mustGet(t, model, "left").Due.After(time.Now()))
	})
}

// A store that hangs delays Close by no more than a batch may take.
func TestClose_StoreHangs_Returns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		cfg := unhurried()
		cfg.Commit.Timeout = 5 * time.Second
		branches := blocking()
		c := start(t, &link{Store: memstore.New(time.Hour), before: func(ctx context.Context) error {
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}, branches, cfg)
		for range 100 {
			require.NoError(t, c.Submit(t.Context(), newSaga(2)))
		}
		hangs.Store(true)
		close(branches.goOn)
		time.Sleep(time.Second)
		began := time.Now()
		kill(c)
		// What is being written, then the leases that are handed back, then claims.
		require.LessOrEqual(t, time.Since(began), 3*cfg.Commit.Timeout)
	})
}

// A saga that waits is due when its time is out. On a store that is slow to create it,
// or whose clock rounds down, it is taken up a little earlier than that.
func TestRun_TakenUpJustBeforeItsTimeout_CallsNoActionOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &badWriter{memstore.New(time.Hour), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			if _, creates := changes[0].(*store.Create); creates {
				time.Sleep(50 * time.Millisecond)
			}
			return to.Apply(ctx, changes)
		}}
		undecided := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch.IsCompensation() {
				return machine.Succeeded, ""
			}
			return machine.Ongoing, "not yet"
		}}
		cfg := unhurried()
		cfg.PollInterval = 10 * time.Millisecond
		c := start(t, way, undecided, cfg)
		s := newSaga(1)
		s.Timeout, s.RetryInterval = 10*time.Second, time.Hour
		require.NoError(t, c.Submit(t.Context(), s))
		time.Sleep(11 * time.Second)
		require.Equal(t, store.StatusFailed, mustWait(t, c, s.GID).Status)
		require.Equal(t, []string{"a0", "c0"}, undecided.of(s.GID))
	})
}

// Nothing is written before a call, so nobody knows of one that a stop cut off: the
// limit is of calls that were not answered to one that lived on.
func TestRun_RetryLimit_DoesNotCountCallsThatAStopCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(time.Hour)
		silent := &branches{answer: func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch.IsCompensation() {
				return machine.Succeeded, ""
			}
			<-ctx.Done()
			return machine.Unknown, "no answer"
		}}
		cfg := unhurried()
		cfg.RequestTimeout = 10 * time.Second
		s := newSaga(1)
		s.RetryLimit = 2
		c := start(t, shared, silent, cfg)
		require.NoError(t, c.Submit(t.Context(), s))
		want := []string{"a0"}
		for range 4 {
			time.Sleep(time.Second)
			require.Equal(t, want, silent.of(s.GID))
			kill(c)
			time.Sleep(cfg.RequestTimeout)
			c = start(t, shared, silent, cfg)
			want = append(want, "a0")
		}
		time.Sleep(time.Minute)
		require.Equal(t, store.StatusFailed, mustWait(t, c, s.GID).Status)
		require.Equal(t, append(want, "a0", "a0", "c0"), silent.of(s.GID))
	})
}
