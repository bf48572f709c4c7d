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

// Who demands may be the coordinator that runs the saga, or another one.
func onEither(t *testing.T, test func(t *testing.T, s store.Store, here, demanding *saga.Coordinator, all *blocked)) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		name := "here"
		if elsewhere {
			name = "elsewhere"
		}
		t.Run(name, func(t *testing.T) {
			onStores(t, time.Hour, func(t *testing.T, open opener) {
				s, all := open(), blocking(store.Action(1))
				here := start(t, s, all, patient())
				demanding := here
				if elsewhere {
					demanding = start(t, open(), all, patient())
				}
				test(t, s, here, demanding, all)
			})
		})
	}
}

// The action under way is waited for before its step is compensated, and the
// action after it is never called.
func TestAbort_Running_IsCompensatedOnceTheActionHasEnded(t *testing.T) {
	onEither(t, func(t *testing.T, s store.Store, here, demanding *saga.Coordinator, all *blocked) {
		transfer := newSaga(3)
		require.NoError(t, here.Submit(t.Context(), transfer))
		<-all.called
		require.NoError(t, demanding.Abort(t.Context(), transfer.GID, "changed my mind"))
		require.NoError(t, demanding.Abort(t.Context(), transfer.GID, "once more"), "which changes nothing")
		record := mustGet(t, s, transfer.GID)
		require.Equal(t, store.StatusAborting, record.Status)
		require.Equal(t, here.Owner(), record.Owner, "who runs it goes on")
		require.Equal(t, []string{"a0", "a1"}, all.of(transfer.GID))

		close(all.goOn)
		require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: "changed my mind"}, mustWait(t, here, transfer.GID))
		require.Equal(t, []string{"a0", "a1", "c1", "c0"}, all.of(transfer.GID))
		require.EqualValues(t, 1, mustGet(t, s, transfer.GID).Epoch, "nobody took it over")
		require.NoError(t, demanding.Abort(t.Context(), transfer.GID, "too late"), "it has failed, as was wanted")
	})
}

func TestForceStop_Running_EndsItWithoutCompensation(t *testing.T) {
	onEither(t, func(t *testing.T, s store.Store, here, demanding *saga.Coordinator, all *blocked) {
		transfer := newSaga(3)
		ended := make(chan saga.Result, 1)
		go func() {
			result, _ := here.Run(context.WithoutCancel(t.Context()), transfer)
			ended <- result
		}()
		<-all.called
		require.NoError(t, demanding.ForceStop(t.Context(), transfer.GID, "mended by hand"))
		if demanding != here { // it finds out with its next write
			close(all.goOn)
		}
		result := <-ended
		require.Equal(t, store.StatusFailed, result.Status)
		require.Equal(t, "stopped by force, without compensation: mended by hand", result.Reason)
		info, err := saga.Read(mustGet(t, s, transfer.GID))
		require.NoError(t, err)
		require.True(t, info.State.Forced, "an audit must not ask for its compensations")
		require.Equal(t, []string{"a0", "a1"}, all.of(transfer.GID))
		require.NoError(t, demanding.ForceStop(t.Context(), transfer.GID, "again"))
	})
}

// What is put off is taken up at once.
func TestDemands_PutOff_AreMetAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		demand func(ctx context.Context, c *saga.Coordinator, gid string) error
		want   saga.Result
		calls  []string
	}{
		"abort": {
			func(ctx context.Context, c *saga.Coordinator, gid string) error { return c.Abort(ctx, gid, "enough") },
			saga.Result{Status: store.StatusFailed, Reason: "enough"},
			[]string{"a0", "a1", "c1", "c0"},
		},
		"retry": {
			func(ctx context.Context, c *saga.Coordinator, gid string) error { return c.Retry(ctx, gid) },
			saga.Result{Status: store.StatusSucceeded},
			[]string{"a0", "a1", "a1"},
		},
		"force stop": {
			func(ctx context.Context, c *saga.Coordinator, gid string) error { return c.ForceStop(ctx, gid, "now") },
			saga.Result{Status: store.StatusFailed, Reason: "stopped by force, without compensation: now"},
			[]string{"a0", "a1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, time.Hour, func(t *testing.T, open opener) {
				asked := 0
				all := &branches{}
				all.answer = func(_ context.Context, c saga.Call) (machine.Outcome, string) {
					if c.Branch == store.Action(1) {
						if asked++; asked == 1 {
							return machine.Ongoing, "not yet"
						}
					}
					return machine.Succeeded, ""
				}
				s := open()
				cfg := patient()
				cfg.RetryInterval, cfg.PollInterval = time.Hour, time.Hour
				c := start(t, s, all, cfg)
				transfer := newSaga(2)
				require.NoError(t, c.Submit(t.Context(), transfer))
				until(t, "it is put off", func() bool { return c.Counters().Deferred == 1 })
				record := mustGet(t, s, transfer.GID)
				require.Empty(t, record.Owner, "nobody runs it")
				require.Greater(t, time.Until(record.Due), 30*time.Minute)

				require.NoError(t, tt.demand(t.Context(), c, transfer.GID))
				until(t, "it has ended", func() bool { return mustGet(t, s, transfer.GID).Status.Final() })
				require.Equal(t, tt.want, mustWait(t, c, transfer.GID))
				require.Equal(t, tt.calls, all.of(transfer.GID))
			})
		})
	}
}

func TestDemands_RefusedWhereTheyCannotBeMet(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := blocking(store.Action(1))
		c := start(t, open(), all, patient())
		ctx := t.Context()
		for name, demand := range map[string]func(gid string) error{
			"abort":      func(gid string) error { return c.Abort(ctx, gid, "") },
			"force stop": func(gid string) error { return c.ForceStop(ctx, gid, "") },
			"retry":      func(gid string) error { return c.Retry(ctx, gid) },
		} {
			require.ErrorIs(t, demand("nobody"), store.ErrNotFound, name)
			require.ErrorIs(t, demand("{bad}"), store.ErrInvalid, name)
			done := newSaga(1)
			mustRun(t, c, done)
			require.ErrorIs(t, demand(done.GID), saga.ErrEnded, name)
		}
		running := newSaga(2)
		require.NoError(t, c.Submit(ctx, running))
		<-all.called
		require.NoError(t, c.Retry(ctx, running.GID), "it is being run: nothing to do")
		close(all.goOn)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, running.GID).Status)
		require.Equal(t, []string{"a0", "a1"}, all.of(running.GID))
	})
}

// A coordinator that was stopped while its saga was aborted must not go on as if
// nothing had happened.
func TestAbort_OwnerIsDead_SuccessorCompensates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		gone := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch == store.Action(1) {
				time.Sleep(24 * time.Hour) // and nobody is there to hear the answer
			}
			return machine.Succeeded, ""
		}}
		dead := start(t, model, gone, unhurried())
		transfer := newSaga(2)
		require.NoError(t, dead.Submit(t.Context(), transfer))
		synctest.Wait()
		next := &branches{}
		alive := start(t, model, next, unhurried())
		require.NoError(t, alive.Abort(t.Context(), transfer.GID, "enough"))
		synctest.Wait()
		require.Empty(t, next.of(transfer.GID), "the action may still be under way")
		time.Sleep(2 * time.Hour) // longer than a lease
		require.Equal(t, []string{"c1", "c0"}, next.of(transfer.GID))
		require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: "enough"}, mustWait(t, alive, transfer.GID))
	})
}

// Every branch that is held is called again, not only the one whose pause would
// have ended first.
func TestRetry_EndsEveryPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		all := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			switch {
			case mended.Load():
				return machine.Succeeded, ""
			case c.Branch == store.Action(0):
				return machine.Ongoing, "not yet" // which is left alone for the whole interval
			default:
				return machine.Unknown, "broken" // for less
			}
		}}
		cfg := unhurried()
		cfg.RetryInterval = 30 * time.Minute
		c := start(t, memstore.New(time.Hour), all, cfg)
		s := newSaga(2)
		s.Concurrent = true
		require.NoError(t, c.Submit(t.Context(), s))
		synctest.Wait()
		info, err := c.Get(t.Context(), s.GID)
		require.NoError(t, err)
		require.Len(t, info.State.Retries, 2)
		mended.Store(true)
		require.NoError(t, c.Retry(t.Context(), s.GID))
		synctest.Wait()
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
	})
}

// The answer to putting a saga off is lost: it is put off all the same.
func TestRun_PutOffAndAnswerLost_IsNotTakenForATakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &badWriter{memstore.New(time.Hour), func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			errs := to.Apply(ctx, changes)
			if t, ok := changes[0].(*store.Transition); ok && t.Release {
				return all(errCut, changes)
			}
			return errs
		}}
		undecided := &branches{answer: func(context.Context, saga.Call) (machine.Outcome, string) { return machine.Ongoing, "not yet" }}
		cfg := unhurried()
		cfg.RetryInterval = time.Hour
		c := start(t, way, undecided, cfg)
		require.NoError(t, c.Submit(t.Context(), newSaga(1)))
		time.Sleep(time.Minute)
		require.Equal(t, saga.Counters{Submitted: 1, Deferred: 1, StoreErrors: 1}, c.Counters())
	})
}

// The saga is put off between the look of whoever demands and its write: nobody
// runs it any more who could go on, and nobody wakes it but the one who demanded.
func TestDemand_RacesWithPuttingOff_IsNotSleptOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention time.Duration
		demand    func(ctx context.Context, c *saga.Coordinator, gid string) error
		fails     bool // the demand, after its first write
		calls     []string
	}{
		"abort":                             {time.Hour, abortIt, false, []string{"a0", "a1", "c1", "c0"}},
		"abort, and once more":              {time.Hour, abortIt, true, []string{"a0", "a1", "c1", "c0"}},
		"forced stop":                       {time.Hour, stopIt, false, []string{"a0", "a1"}},
		"forced stop, nothing is kept":      {0, stopIt, false, []string{"a0", "a1"}},
		"forced stop, and again, none kept": {0, stopIt, true, []string{"a0", "a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(tt.retention)
				participants := blocking(store.Action(1))
				answers := participants.answer
				participants.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
					outcome, why := answers(ctx, c)
					if c.Branch == store.Action(1) {
						return machine.Ongoing, "not yet"
					}
					return outcome, why
				}
				cfg := unhurried()
				cfg.RetryInterval = 24 * time.Hour
				here := start(t, model, participants, cfg)
				fails := false
				elsewhere := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
					if fails {
						return all(errCut, changes)
					}
					if record := mustGet(t, model, changes[0].Gid()); record.Status == store.StatusSubmitted && record.Owner != "" {
						close(participants.goOn) // the run's write comes first
						synctest.Wait()
						require.Empty(t, mustGet(t, model, record.GID).Owner)
						fails = tt.fails
					}
					return to.Apply(ctx, changes)
				}}, participants, cfg)
				s := newSaga(3)
				told := runs(t, here, s)
				<-participants.called
				err := tt.demand(t.Context(), elsewhere, s.GID)
				if tt.fails {
					require.ErrorIs(t, err, errCut)
					fails = false
					err = tt.demand(t.Context(), elsewhere, s.GID)
				}
				require.NoError(t, err)
				time.Sleep(time.Minute)
				require.Equal(t, tt.calls, participants.of(s.GID))
				if tt.retention > 0 {
					require.Equal(t, store.StatusFailed, (<-told).result.Status)
				} else {
					_, err := model.Get(t.Context(), s.GID)
					require.ErrorIs(t, err, store.ErrNotFound)
				}
			})
		})
	}
}

func abortIt(ctx context.Context, c *saga.Coordinator, gid string) error {
	return c.Abort(ctx, gid, "now")
}

func stopIt(ctx context.Context, c *saga.Coordinator, gid string) error {
	return c.ForceStop(ctx, gid, "now")
}
