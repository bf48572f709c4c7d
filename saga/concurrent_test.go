package saga_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// timed are participants who take a time of their own, and a journal of when
// they were called.
func timed(takes map[string]time.Duration, refuse string) (*branches, func() []string) {
	var mu sync.Mutex
	var journal []string
	began := time.Now()
	all := &branches{answer: func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
		mu.Lock()
		journal = append(journal, fmt.Sprintf("%s at %v", label(c.Branch), time.Since(began)))
		mu.Unlock()
		select {
		case <-time.After(takes[label(c.Branch)]):
		case <-ctx.Done():
			return machine.Unknown, "cut off"
		}
		if label(c.Branch) == refuse {
			return machine.Failed, "no money left"
		}
		return machine.Succeeded, ""
	}}
	return all, func() []string {
		mu.Lock()
		defer mu.Unlock()
		sorted := slices.Clone(journal)
		slices.Sort(sorted)
		return sorted
	}
}

// diamond is a saga whose first step comes before the next two, and those before
// the last.
func diamond() *saga.Saga {
	s := newSaga(4)
	s.Concurrent = true
	s.Steps[1].After, s.Steps[2].After, s.Steps[3].After = []int{0}, []int{0}, []int{1, 2}
	return s
}

func TestRun_Concurrent_FollowsTheOrder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes  map[string]time.Duration
		refuse string
		want   []string
		status store.Status
	}{
		"success": {
			map[string]time.Duration{"a0": time.Second, "a1": time.Second, "a2": 2 * time.Second, "a3": time.Second},
			"",
			[]string{"a0 at 0s", "a1 at 1s", "a2 at 1s", "a3 at 3s"},
			store.StatusSucceeded,
		},
		"the last is refused": {
			map[string]time.Duration{"a3": time.Second, "c3": time.Second, "c1": time.Second, "c2": 2 * time.Second},
			"a3",
			[]string{"a0 at 0s", "a1 at 0s", "a2 at 0s", "a3 at 0s", "c0 at 4s", "c1 at 2s", "c2 at 2s", "c3 at 1s"},
			store.StatusFailed,
		},
		// Step 2 is under way when step 1 is refused: it is waited for, and step 3
		// was never started.
		"one of two is refused": {
			map[string]time.Duration{"a1": time.Second, "a2": 2 * time.Second},
			"a1",
			[]string{"a0 at 0s", "a1 at 0s", "a2 at 0s", "c0 at 2s", "c1 at 1s", "c2 at 2s"},
			store.StatusFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all, journal := timed(tt.takes, tt.refuse)
				c := start(t, memstore.New(time.Hour), all, unhurried())
				require.Equal(t, tt.status, mustRun(t, c, diamond()).Status)
				require.Equal(t, tt.want, journal())
			})
		})
	}
}

func TestRun_Concurrent_OnStores(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := &branches{}
		s := open()
		c := start(t, s, all, patient())
		wide := newSaga(40)
		wide.Concurrent = true
		require.Equal(t, store.StatusSucceeded, mustRun(t, c, wide).Status)
		require.Len(t, all.of(wide.GID), 40)
		require.Equal(t, wide, func() *saga.Saga {
			info, err := c.Get(t.Context(), wide.GID)
			require.NoError(t, err)
			return info.Saga
		}())

		empty := &saga.Saga{GID: saga.NewGID(), Concurrent: true, Steps: make([]saga.Step, 100)}
		before := all.of(empty.GID)
		require.Equal(t, store.StatusSucceeded, mustRun(t, c, empty).Status)
		require.Equal(t, before, all.of(empty.GID), "steps without a URL are not called")
	})
}

func TestRun_Timeout_AbortsAndCompensates(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]struct {
		action time.Duration // of the second step, which is called at once
		want   []string
	}{
		"while a branch is under way": {8 * time.Second, []string{"a0 at 0s", "a1 at 0s", "c0 at 8s", "c1 at 8s"}},
		"while it is put off":         {0, []string{"a0 at 0s", "a1 at 0s", "c0 at 5s", "c1 at 5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all, journal := timed(map[string]time.Duration{"a1": takes.action}, "")
				if takes.action == 0 {
					decided := all.answer
					all.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
						if outcome, why := decided(ctx, c); c.Branch != store.Action(1) {
							return outcome, why
						}
						return machine.Ongoing, "not yet"
					}
				}
				cfg := unhurried()
				cfg.RetryInterval, cfg.PollInterval = time.Minute, time.Millisecond
				c := start(t, memstore.New(time.Hour), all, cfg)
				s := newSaga(3)
				s.Timeout = 5 * time.Second
				result := mustRun(t, c, s)
				require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: "not done within 5s"}, result)
				got := journal()
				for i := range got { // the poll adds a few milliseconds
					var what string
					var at time.Duration
					fmt.Sscanf(got[i], "%s", &what)
					at, err := time.ParseDuration(got[i][len(what)+len(" at "):])
					require.NoError(t, err)
					got[i] = fmt.Sprintf("%s at %v", what, at.Truncate(10*time.Millisecond))
				}
				require.Equal(t, takes.want, got)
			})
		})
	}
}

// A saga that asks for longer calls than a lease holds has its lease renewed
// first, so nobody takes it over meanwhile.
func TestRun_CallLongerThanTheLease_StaysOurs(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(s *saga.Saga){
		"the saga's": func(s *saga.Saga) { s.RequestTimeout = 5 * time.Minute },
		"the step's": func(s *saga.Saga) { s.Steps[1].Timeout = 5 * time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all, _ := timed(map[string]time.Duration{"a1": 4 * time.Minute}, "")
				model := memstore.New(time.Hour)
				cfg := saga.DefaultConfig()
				c := start(t, model, all, cfg)
				start(t, model, all, cfg)
				s := newSaga(3)
				edit(s)
				require.NoError(t, c.Submit(t.Context(), s))
				time.Sleep(5 * time.Minute)
				require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
				require.Equal(t, []string{"a0", "a1", "a2"}, all.of(s.GID))
				require.EqualValues(t, 1, mustGet(t, model, s.GID).Epoch)
			})
		})
	}
}

// A call that takes longer than its limit is cut off, and repeated later and
// later; after the limit of retries the saga is aborted.
func TestRun_NoAnswer_BacksOffUpToTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Time
		all := &branches{answer: func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch != store.Action(1) {
				return machine.Succeeded, ""
			}
			calls = append(calls, time.Now())
			<-ctx.Done()
			return machine.Unknown, "cut off"
		}}
		cfg := unhurried()
		cfg.PollInterval, cfg.MaxRetryInterval = 50*time.Millisecond, 40*time.Second
		c := start(t, memstore.New(time.Hour), all, cfg)
		s := newSaga(2)
		s.Steps[1].Timeout, s.RetryInterval, s.RetryLimit = 2*time.Second, 10*time.Second, 4
		require.NoError(t, c.Submit(t.Context(), s))
		time.Sleep(10 * time.Minute)
		result := mustWait(t, c, s.GID)
		require.Equal(t, store.StatusFailed, result.Status)
		require.Equal(t, "no answer after 4 retries: step 2, action: cut off", result.Reason)
		require.Len(t, calls, 5)
		for i, least := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 40 * time.Second} {
			pause := calls[i+1].Sub(calls[i]) - 2*time.Second
			require.GreaterOrEqual(t, pause, least, "pause %d", i)
			require.LessOrEqual(t, pause, least*3/2+100*time.Millisecond, "pause %d", i)
		}
	})
}

func TestFuncs_CallsWhatIsRegistered(t *testing.T) {
	t.Parallel()
	next := &branches{}
	funcs := branch.NewFuncs(next)
	var seen saga.Call
	ok := funcs.Handle("ok", func(_ context.Context, c saga.Call) error { seen = c; return nil })
	no := funcs.Handle("no", func(context.Context, saga.Call) error { return fmt.Errorf("%w: no money left", branch.ErrRefused) })
	later := funcs.Handle("later", func(context.Context, saga.Call) error { return branch.ErrOngoing })
	broken := funcs.Handle("broken", func(context.Context, saga.Call) error { return fmt.Errorf("broken") })
	panics := funcs.Handle("panics", func(context.Context, saga.Call) error { panic("oh") })
	for url, want := range map[string]machine.Outcome{
		ok: machine.Succeeded, no: machine.Failed, later: machine.Ongoing, broken: machine.Ended, panics: machine.Ended,
		"func:unknown": machine.Ended, "http://elsewhere": machine.Succeeded,
	} {
		outcome, why := funcs.Call(t.Context(), saga.Call{GID: "g", URL: url, Payload: "p"})
		require.Equal(t, want, outcome, url)
		require.Equal(t, want == machine.Succeeded, why == "", url)
	}
	require.Equal(t, "p", seen.Payload)
	require.Equal(t, []string{"a0"}, next.of("g"))

	require.NoError(t, funcs.Check(ok))
	require.NoError(t, funcs.Check("http://elsewhere"))
	require.ErrorContains(t, funcs.Check("func:unknown"), "no such function")
	require.Error(t, funcs.Check("bad:"))
	require.ErrorContains(t, branch.NewFuncs(nil).Check("http://elsewhere"), "only functions")
	outcome, _ := branch.NewFuncs(nil).Call(t.Context(), saga.Call{URL: "http://elsewhere"})
	require.Equal(t, machine.Ended, outcome)
}

func TestObserve_SeesEveryAttempt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []saga.Attempt
	cfg := patient()
	cfg.Observe = func(a saga.Attempt) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, a)
	}
	all := refusing(1)
	c := start(t, memstore.New(time.Hour), all, cfg)
	s := newSaga(2)
	s.Headers = map[string]string{"Tenant": "7"}
	mustRun(t, c, s)
	var calls []string
	for _, a := range seen {
		require.Equal(t, s.GID, a.GID)
		require.Equal(t, s.Headers, a.Headers)
		require.False(t, a.Began.IsZero())
		calls = append(calls, fmt.Sprint(label(a.Branch), " ", a.Outcome, " ", a.Reason))
	}
	require.Equal(t, []string{"a0 1 ", "a1 2 step 2, action: no money left", "c1 1 ", "c0 1 "}, calls)
}
