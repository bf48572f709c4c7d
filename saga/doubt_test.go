package saga_test

import (
	"context"
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

// The tests of this file, in a bubble as well, are about answers of the store
// that are lost, and what may be concluded from what is found there.

// The answer to a second submit is lost while the saga is put off. It must go on
// where it was, when it is due, and not be run from the start.
func TestSubmit_AgainWithLostAnswer_DoesNotStartAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		refused   int          // this action is
		undecided store.Branch // on this branch it is put off
		before    []string
		after     []string
	}{
		{9, store.Action(1), []string{"a0", "a1"}, []string{"a1"}},
		{1, store.Compensation(1), []string{"a0", "a1", "c1"}, []string{"c1", "c0"}},
		{1, store.Compensation(0), []string{"a0", "a1", "c1", "c0"}, []string{"c0"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var lose, mended atomic.Bool
			way := &badWriter{memstore.New(time.Hour), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
				errs := to.Apply(ctx, changes)
				if lose.Load() {
					return all(errCut, changes)
				}
				return errs
			}}
			cfg := unhurried()
			cfg.RetryInterval = time.Hour
			branches := refusing(tt.refused)
			answer := branches.answer
			branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
				if c.Branch == tt.undecided && !mended.Load() {
					return machine.Unknown, "" // without a word
				}
				return answer(ctx, c)
			}
			c := start(t, way, branches, cfg)
			s := newSaga(2)
			require.NoError(t, c.Submit(t.Context(), s))
			synctest.Wait()
			require.Equal(t, tt.before, branches.of(s.GID))
			lose.Store(true)
			require.NoError(t, c.Submit(t.Context(), s), "it is there")
			lose.Store(false)
			time.Sleep(time.Minute)
			require.Equal(t, tt.before, branches.of(s.GID))
			mended.Store(true)
			_, err := c.Wait(t.Context(), s.GID)
			require.NoError(t, err)
			require.Equal(t, append(tt.before, tt.after...), branches.of(s.GID))
		})
	}
}

// The answer to a submit is lost, while the saga runs in another coordinator,
// which created it. It is not to be run here as well.
func TestSubmit_RunsElsewhereAndLostAnswer_DoesNotStartAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		there, here := blocking(), &branches{}
		a := start(t, model, there, unhurried())
		b := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			errs := to.Apply(ctx, changes)
			if _, ok := changes[0].(*store.Create); ok {
				return all(errCut, changes)
			}
			return errs
		}}, here, unhurried())
		s := newSaga(2)
		require.NoError(t, a.Submit(t.Context(), s))
		<-there.called
		require.NoError(t, b.Submit(t.Context(), s), "it is there")
		synctest.Wait()
		close(there.goOn)
		result, err := b.Wait(t.Context(), s.GID)
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, result.Status)
		require.Empty(t, here.of(s.GID))
	})
}

// slowReader is a store whose answers to Get take a while.
type slowReader struct {
	*badWriter
	delay time.Duration
}

func (r *slowReader) Get(ctx context.Context, gid string) (store.Record, error) {
	record, err := r.Store.Get(ctx, gid)
	time.Sleep(r.delay)
	return record, err
}

// The answer to a second submit is lost while the saga is put off, and before
// that is found out another coordinator takes the saga over.
func TestSubmit_TakenOverAndLostAnswer_DoesNotStartAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lose atomic.Bool
		model := memstore.New(time.Hour)
		way := &slowReader{delay: time.Minute, badWriter: &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			errs := to.Apply(ctx, changes)
			if lose.Load() {
				return all(errCut, changes)
			}
			return errs
		}}}
		silent := &branches{answer: func(context.Context, saga.Call) (machine.Outcome, string) { return machine.Ongoing, "" }}
		cfg := unhurried()
		cfg.RetryInterval, cfg.PollInterval = 10*time.Second, 30*time.Minute
		a := start(t, way, silent, cfg)
		s := newSaga(1)
		require.NoError(t, a.Submit(t.Context(), s))
		synctest.Wait()
		require.EqualValues(t, 1, a.Counters().Deferred)

		there := blocking()
		start(t, model, there, unhurried())
		lose.Store(true)
		submitted := make(chan error, 1)
		go func() { submitted <- a.Submit(t.Context(), s) }()
		<-there.called
		lose.Store(false)
		require.NoError(t, <-submitted)
		time.Sleep(2 * way.delay) // until it has found out, too
		require.Equal(t, []string{"a0"}, silent.of(s.GID))
		require.EqualValues(t, 1, a.Counters().Submitted, "it is not begun once more")
		close(there.goOn)
	})
}

// A create whose answer is lost is looked up, and the saga runs at once.
func TestSubmit_LostAnswer_RunsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &badWriter{memstore.New(time.Hour), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			errs := to.Apply(ctx, changes)
			if _, ok := changes[0].(*store.Create); ok {
				return all(errCut, changes)
			}
			return errs
		}}
		branches := &branches{}
		c := start(t, way, branches, unhurried())
		s := newSaga(2)
		began := time.Now()
		result, err := c.Run(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, result)
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, []string{"a0", "a1"}, branches.of(s.GID))

		_, err = c.Run(t.Context(), other(s))
		require.ErrorIs(t, err, store.ErrExists)
		require.NotErrorIs(t, err, saga.ErrUnknown)
	})
}

// A create that never arrived, or is still on its way, leaves its submitter in
// doubt, and says so.
func TestSubmit_NoAnswerAndNoSaga_IsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, &badWriter{memstore.New(time.Hour), func(_ context.Context, changes []store.Change, _ store.Applier) []error {
			return all(errCut, changes)
		}}, &branches{}, unhurried())
		err := c.Submit(t.Context(), newSaga(1))
		require.ErrorIs(t, err, saga.ErrUnknown)
		require.ErrorIs(t, err, errCut)
	})
}

// The store keeps no finished sagas. A coordinator that is cut off with the end
// of a saga in its hand finds nothing when it is back: that may be its own end,
// or another which a second coordinator has written. It must not guess.
func TestRun_GoneAfterTheLease_IsNotTakenForOurEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = 4*time.Second, time.Second
		var away atomic.Bool
		model := memstore.New(0)
		first := blocking()
		a := start(t, &link{Store: model, before: func(context.Context) error {
			if away.Load() {
				return errCut
			}
			return nil
		}}, first, cfg)
		s := newSaga(1)
		told := runs(t, a, s)
		<-first.called
		away.Store(true)
		close(first.goOn) // its action succeeds

		b := start(t, model, refusing(0), cfg) // and is refused when it is asked again
		time.Sleep(2 * cfg.Lease)
		require.EqualValues(t, 1, b.Counters().Failed)
		away.Store(false)
		got := <-told
		require.ErrorIs(t, got.err, saga.ErrEndUnknown, "%v", got.result)
		require.EqualValues(t, 1, settled(t, a).Lost)
	})
}

// Somebody wipes the store underneath a saga: that is not its end either.
func TestRun_StoreIsWiped_IsNotTakenForOurEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wiped atomic.Bool
		branches := blocking()
		c := start(t, &link{Store: memstore.New(time.Hour), before: func(context.Context) error {
			if wiped.Load() {
				return store.ErrNotFound
			}
			return nil
		}}, branches, unhurried())
		told := runs(t, c, newSaga(1))
		<-branches.called
		wiped.Store(true)
		close(branches.goOn)
		require.ErrorIs(t, (<-told).err, saga.ErrEndUnknown)
		require.Zero(t, settled(t, c).Succeeded)
	})
}

// Only the answer to its end was lost, and its lease has not ended: it is its own.
func TestRun_GoneUnderTheLease_IsOurEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, &badWriter{memstore.New(0), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			errs := to.Apply(ctx, changes)
			if change, ok := changes[0].(*store.Transition); ok && change.To.Final() {
				return all(errCut, changes)
			}
			return errs
		}}, &branches{}, unhurried())
		result, err := c.Run(t.Context(), newSaga(2))
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, result.Status)
		require.EqualValues(t, 1, settled(t, c).Succeeded)
	})
}
