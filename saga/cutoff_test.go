package saga_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// The tests of this file are about calls that end for the caller before they end
// for the participant, who knows nothing of it and works on, until the deadline of
// the call at most.

// cutShort has calls of one branch end without an answer after a while, though the
// participant works on, and tells when the others of the same saga begin.
type cutShort struct {
	*branches
	takes time.Duration // those of all other branches

	mu    sync.Mutex
	began map[string]time.Time // the first call of each branch, by label
}

func cut(b store.Branch, after time.Duration, outcome machine.Outcome) *cutShort {
	c := &cutShort{branches: &branches{}, began: map[string]time.Time{}}
	c.answer = func(ctx context.Context, call saga.Call) (machine.Outcome, string) {
		c.mu.Lock()
		if _, again := c.began[label(call.Branch)]; !again {
			c.began[label(call.Branch)] = time.Now()
		}
		c.mu.Unlock()
		if call.Branch != b {
			sleepOr(ctx, c.takes)
			return machine.Succeeded, ""
		}
		return outcome, sleepOr(ctx, after)
	}
	return c
}

func sleepOr(ctx context.Context, d time.Duration) string {
	if err := sleep(ctx, d); err != nil {
		return err.Error()
	}
	return errCut.Error()
}

func (c *cutShort) at(label string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began[label]
}

// calledFor is a configuration whose calls have so much time, and whose sagas are
// put off until somebody asks.
func calledFor(d time.Duration) saga.Config {
	cfg := unhurried()
	cfg.RequestTimeout, cfg.RetryInterval, cfg.MaxRetryInterval = d, time.Hour, time.Hour
	return cfg
}

// A coordinator that is closed cuts calls off. Nobody else calls a branch of these
// sagas before the deadlines of those calls, nor compensates.
func TestClose_CallsCutOff_AreNotOverBeforeTheirDeadlines(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second
	for name, tt := range map[string]struct {
		branch store.Branch
		abort  bool
		first  string // branch that is called next
	}{
		"an action":                    {store.Action(1), false, "a1"},
		"an action, aborted meanwhile": {store.Action(1), true, "c1"},
		"a compensation":               {store.Compensation(2), false, "c2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(time.Hour)
				cfg := calledFor(limit)
				before := cut(tt.branch, time.Hour, machine.Unknown)
				before.takes = 100 * time.Millisecond
				a := start(t, model, before, cfg)
				s := newSaga(3)
				require.NoError(t, a.Submit(t.Context(), s))
				if tt.branch.IsCompensation() {
					time.Sleep(250 * time.Millisecond) // until the last action
					require.NoError(t, a.Abort(t.Context(), s.GID, "enough"))
				}
				time.Sleep(time.Second)
				kill(a)
				next := cut(-1, 0, 0)
				b := start(t, model, next, cfg)
				if tt.abort {
					require.NoError(t, b.Abort(t.Context(), s.GID, "enough"))
				}
				_, err := b.Wait(t.Context(), s.GID)
				require.NoError(t, err)
				require.Equal(t, tt.first, next.of(s.GID)[0])
				began := next.at(tt.first).Sub(before.at(label(tt.branch)))
				require.GreaterOrEqual(t, began, limit)
				require.Less(t, began, limit+2*time.Second, "nor much later")
			})
		})
	}
}

// The same, and another process has aborted the saga without this one having noticed.
// It is handed back all the same, not left until its lease ends.
func TestClose_AbortedElsewhere_IsHandedBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 5 * time.Second
		model := memstore.New(time.Hour)
		cfg := calledFor(limit)
		before := cut(store.Action(1), time.Hour, machine.Unknown)
		a := start(t, model, before, cfg)
		s := newSaga(3)
		require.NoError(t, a.Submit(t.Context(), s))
		synctest.Wait()
		next := cut(-1, 0, 0)
		b := start(t, model, next, cfg)
		require.NoError(t, b.Abort(t.Context(), s.GID, "enough"))
		kill(a)
		require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: "enough"}, mustWait(t, b, s.GID))
		require.Equal(t, []string{"c1", "c0"}, next.of(s.GID))
		began := next.at("c1").Sub(before.at("a1"))
		require.GreaterOrEqual(t, began, limit)
		require.Less(t, began, 2*limit+2*time.Second, "when it is due, and what may be left of the action")
	})
}

// A connection is cut while an action is under way, which counts as no answer. Its
// step is not compensated before the deadline of the call, whoever does it.
func TestAbort_ConnectionWasCut_WaitsForTheDeadline(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second
	for name, tt := range map[string]struct {
		outcome   machine.Outcome
		elsewhere bool // another coordinator goes on
		limited   bool // to one retry, after which it is aborted
		wait      time.Duration
	}{
		"by the limit of retries":            {machine.Unknown, false, true, limit + time.Second},
		"on demand":                          {machine.Unknown, false, false, limit},
		"on demand, elsewhere":               {machine.Unknown, true, false, limit},
		"by the limit, and has ended":        {machine.Ended, false, true, 0},
		"on demand, elsewhere, it has ended": {machine.Ended, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(time.Hour)
				cfg := calledFor(limit)
				all := cut(store.Action(1), time.Second, tt.outcome)
				c := start(t, model, all, cfg)
				s := newSaga(3)
				if tt.limited {
					s.RetryLimit, s.RetryInterval = 1, time.Millisecond
				}
				require.NoError(t, c.Submit(t.Context(), s))
				time.Sleep(time.Second + time.Millisecond)
				synctest.Wait()
				if tt.elsewhere {
					c.Close(t.Context())
					c = start(t, model, all, cfg)
				}
				if !tt.limited {
					require.EqualValues(t, store.StatusSubmitted, mustGet(t, model, s.GID).Status)
					require.NoError(t, c.Abort(t.Context(), s.GID, "enough"))
				}
				_, err := c.Wait(t.Context(), s.GID)
				require.NoError(t, err)
				calls := all.of(s.GID)
				require.Equal(t, []string{"c1", "c0"}, calls[len(calls)-2:])
				began := all.at("c1").Sub(all.at("a1"))
				require.GreaterOrEqual(t, began, tt.wait)
				require.Less(t, began, max(tt.wait, time.Second)+3*time.Second, "nor much later")
			})
		})
	}
}

// The store has lost an abort, and another process has gone on from before it: its
// action may be at work when the abort is written again.
func TestRun_StoreLosesTheAbort_WaitsForTheDeadlineOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		model := memstore.New(time.Hour)
		knows, back := blocking(store.Compensation(1)), func() {}
		answer := knows.answer
		knows.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch == store.Action(1) {
				back = model.Snapshot()
				return machine.Failed, "no money left"
			}
			return answer(ctx, c)
		}
		cfg := calledFor(limit)
		cfg.PollInterval = time.Hour // it takes up nothing
		a := start(t, model, knows, cfg)
		time.Sleep(time.Second)
		s := newSaga(2)
		require.NoError(t, a.Submit(t.Context(), s))
		<-knows.called
		back()
		overdue(t, model, s.GID)
		there := cut(store.Action(1), time.Second, machine.Unknown)
		b := start(t, model, there, calledFor(limit))
		time.Sleep(2 * time.Second)
		require.Empty(t, mustGet(t, model, s.GID).Owner, "it is deferred")
		close(knows.goOn)
		require.Equal(t, store.StatusFailed, mustWait(t, b, s.GID).Status)
		require.Equal(t, []string{"a1", "c1", "c0"}, there.of(s.GID))
		require.GreaterOrEqual(t, there.at("c1").Sub(there.at("a1")), limit)
	})
}

// The same with a participant over HTTP, which is cut off and works on.
func TestAbort_HTTPConnectionWasCut_WaitsForTheDeadline(t *testing.T) {
	t.Parallel()
	const limit = 4 * time.Second // each call must be answered within it
	var mu sync.Mutex
	began := map[string]time.Time{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		began[r.URL.Path] = time.Now()
		mu.Unlock()
		if r.URL.Path == "/do" {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	caller := newHTTPCaller(t)
	cfg := patient()
	cfg.RequestTimeout, cfg.RetryInterval = limit, time.Hour
	c := start(t, memstore.New(time.Hour), caller, cfg)
	s := &saga.Saga{GID: saga.NewGID(), Steps: []saga.Step{{Action: server.URL + "/do", Compensate: server.URL + "/undo"}}}
	submitted := time.Now()
	require.NoError(t, c.Submit(t.Context(), s))
	until(t, "it is put off", func() bool { return c.Counters().Deferred == 1 })
	require.NoError(t, c.Abort(t.Context(), s.GID, "enough"))
	require.Equal(t, store.StatusFailed, mustWait(t, c, s.GID).Status)
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, began["/undo"].Sub(submitted), limit)
}

// A process was stopped just before a call. What is left of the lease bounds it,
// and when nothing is left it is not made.
func TestCall_ProcessWasStopped_EndsWithTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deadlines := 0
		all := &branches{answer: func(ctx context.Context, _ saga.Call) (machine.Outcome, string) {
			end, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Second, time.Until(end))
			deadlines++
			return machine.Succeeded, ""
		}}
		c := start(t, memstore.New(time.Hour), all, calledFor(5*time.Second))
		e := saga.CallUnder(c, newSaga(1), store.Action(0), time.Now().Add(time.Second))
		require.Equal(t, machine.Succeeded, e.Outcome)
		require.Equal(t, 1, deadlines)
		for _, late := range []time.Duration{0, time.Millisecond, time.Hour} {
			e = saga.CallUnder(c, newSaga(1), store.Action(0), time.Now().Add(-late))
			require.Equal(t, machine.Event{Outcome: machine.Unknown, Branch: store.Action(0), Reason: "the lease ended before the call began"}, e)
		}
		require.Equal(t, 1, deadlines, "it was called under no lease")
	})
}
