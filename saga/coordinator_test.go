package saga_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
)

// httpBranches serves branches over HTTP, refuses the action of one step, and
// lists what it was asked, in order.
func httpBranches(t *testing.T, refused int) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q := r.URL.Query()
		mu.Lock()
		defer mu.Unlock()
		list = append(list, fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL.Path, q.Get("branch_id"), q.Get("op"), body))
		if q.Get("op") == "action" && q.Get("branch_id") == fmt.Sprintf("%02d", refused+1) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "no money left")
		}
	})
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

func httpSaga(url string) *saga.Saga {
	return &saga.Saga{GID: saga.NewGID(), Steps: []saga.Step{
		{Action: url + "/out", Compensate: url + "/back", Payload: `{"amount":30}`},
		{Action: url + "/look"}, // nothing to undo
		{Action: url + "/in", Compensate: url + "/out-again", Payload: `{"amount":30}`},
	}}
}

func TestRun_ActionsSucceed_InOrder(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		url, asked := httpBranches(t, -1)
		s := open()
		c := start(t, s, newHTTPCaller(t), patient())
		transfer := httpSaga(url)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustRun(t, c, transfer))
		require.Equal(t, []string{
			`POST /out 01 action {"amount":30}`,
			`GET /look 02 action `,
			`POST /in 03 action {"amount":30}`,
		}, asked())
		record := mustGet(t, s, transfer.GID)
		require.Equal(t, store.StatusSucceeded, record.Status)
		require.Equal(t, store.Marks("y-y-y-"), record.Marks)
		require.Empty(t, record.Note)
		require.Equal(t, c.Owner(), record.Owner)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustWait(t, c, transfer.GID))
		require.Equal(t, saga.Counters{Submitted: 1, Succeeded: 1}, settled(t, c))
	})
}

func TestRun_ActionRefused_CompensatesInReverse(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		s := open()
		for refused, want := range []struct {
			calls []string
			marks store.Marks
		}{
			{[]string{"/out", "/back"}, "ny----"},
			{[]string{"/out", "/look", "/back"}, "yyny--"},
			{[]string{"/out", "/look", "/in", "/out-again", "/back"}, "yyyyny"},
		} {
			url, asked := httpBranches(t, refused)
			c := start(t, s, newHTTPCaller(t), patient())
			transfer := httpSaga(url)
			result := mustRun(t, c, transfer)
			require.Equal(t, store.StatusFailed, result.Status)
			require.Equal(t, fmt.Sprintf("step %d, action: 409 Conflict: no money left", refused+1), result.Reason)
			var paths []string
			for _, call := range asked() {
				paths = append(paths, strings.Fields(call)[1])
			}
			require.Equal(t, want.calls, paths)
			record := mustGet(t, s, transfer.GID)
			require.Equal(t, store.StatusFailed, record.Status)
			require.Equal(t, want.marks, record.Marks)
			require.Equal(t, result, mustWait(t, c, transfer.GID))
			require.Equal(t, saga.Counters{Submitted: 1, Failed: 1}, settled(t, c))
		}
	})
}

// settled are the counters once no saga runs.
func settled(t *testing.T, c *saga.Coordinator) saga.Counters {
	t.Helper()
	until(t, "no saga runs", func() bool { return c.Counters().InFlight == 0 })
	return c.Counters()
}

func TestRun_EmptyURLs_SucceedWithoutACall(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		var none branches
		c := start(t, open(), &none, patient())
		s := &saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, store.MaxSteps)}
		require.Equal(t, store.StatusSucceeded, mustRun(t, c, s).Status)
		require.Empty(t, none.journal)
	})
}

func TestRun_SameSagaAgain_GivesTheSameEnd(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := refusing(1)
		c := start(t, open(), all, patient())
		s := newSaga(2)
		first := mustRun(t, c, s)
		require.Equal(t, store.StatusFailed, first.Status)
		for range 3 {
			require.Equal(t, first, mustRun(t, c, s))
			require.NoError(t, c.Submit(t.Context(), s))
		}
		_, err := c.Run(t.Context(), other(s))
		require.ErrorIs(t, err, store.ErrExists)
		require.NotErrorIs(t, err, saga.ErrUnknown)
		require.ErrorIs(t, c.Submit(t.Context(), other(s)), store.ErrExists)
		require.Equal(t, []string{"a0", "a1", "c1", "c0"}, all.of(s.GID))
	})
}

// A hundred clients submit one gid at once, half of them with another body: all
// of one half learn the same end, the others are refused and call nothing.
func TestRun_HundredAtOnce_AreOneSaga(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		var payloads sync.Map
		all := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			payloads.Store(c.Payload, true)
			return machine.Succeeded, ""
		}}
		coordinators := []*saga.Coordinator{start(t, open(), all, patient()), start(t, open(), all, patient())}
		bodies := []*saga.Saga{newSaga(3), nil}
		bodies[1] = other(bodies[0])
		var ended, refused [2]atomic.Int64
		var clients sync.WaitGroup
		for i := range 100 {
			clients.Go(func() {
				body := i / 2 % 2
				result, err := coordinators[i%2].Run(within(t, patience), bodies[body])
				if err != nil {
					assert.ErrorIs(t, err, store.ErrExists)
					refused[body].Add(1)
					return
				}
				assert.Equal(t, store.StatusSucceeded, result.Status)
				ended[body].Add(1)
			})
		}
		clients.Wait()
		won := 0
		if ended[1].Load() > 0 {
			won = 1
		}
		require.EqualValues(t, 50, ended[won].Load())
		require.EqualValues(t, 50, refused[1-won].Load())
		require.Equal(t, []string{"a0", "a1", "a2"}, all.of(bodies[0].GID))
		_, called := payloads.Load(bodies[1-won].Steps[0].Payload)
		require.False(t, called, "a branch of the saga that was refused was called")
	})
}

func TestRun_ActionUndecided_IsPutOffAndResumed(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		var asked atomic.Int64
		all := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch == store.Action(1) {
				switch asked.Add(1) {
				case 1:
					return machine.Ongoing, "not yet"
				case 2:
					return machine.Unknown, "broken"
				}
			}
			return machine.Succeeded, ""
		}}
		s := open()
		c := start(t, s, all, patient())
		transfer := newSaga(3)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustRun(t, c, transfer))
		require.Equal(t, []string{"a0", "a1", "a1", "a1", "a2"}, all.of(transfer.GID))
		record := mustGet(t, s, transfer.GID)
		info, err := saga.Read(record)
		require.NoError(t, err)
		require.Equal(t, "step 2, action: broken", info.State.RetryReason)
		require.EqualValues(t, 3, record.Epoch, "each resumption is a claim")
		require.Equal(t, saga.Counters{Submitted: 1, Recovered: 2, Deferred: 2, Succeeded: 1}, settled(t, c))
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustWait(t, c, transfer.GID), "success needs no reason")
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustRun(t, c, transfer))
	})
}

func TestRun_CompensationFails_IsTriedUntilItSucceeds(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		outcomes := map[store.Branch][]machine.Outcome{
			store.Compensation(1): {machine.Failed, machine.Unknown, machine.Failed},
			store.Compensation(0): {machine.Ongoing},
		}
		var mu sync.Mutex
		all := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			mu.Lock()
			defer mu.Unlock()
			if left := outcomes[c.Branch]; len(left) > 0 {
				outcomes[c.Branch] = left[1:]
				return left[0], "later"
			}
			if c.Branch == store.Action(1) {
				return machine.Failed, "no money left"
			}
			return machine.Succeeded, ""
		}}
		c := start(t, open(), all, patient())
		s := newSaga(2)
		require.Equal(t, store.StatusFailed, mustRun(t, c, s).Status)
		require.Equal(t, []string{"a0", "a1", "c1", "c1", "c1", "c1", "c0", "c0"}, all.of(s.GID))
		require.EqualValues(t, 4, settled(t, c).Deferred)
	})
}

// What a branch says ends up in the store, which takes no zero byte, and not
// much of it. It must not keep the saga from going on.
func TestRun_ReasonThatNoStoreTakes_IsTrimmed(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch.IsCompensation() {
				return machine.Succeeded, ""
			}
			return machine.Failed, "zero: \x00, not UTF-8: \xff, long: " + strings.Repeat("ä", 2000)
		}}
		c := start(t, open(), all, patient())
		s := newSaga(1)
		result := mustRun(t, c, s)
		require.Equal(t, store.StatusFailed, result.Status)
		require.True(t, strings.HasPrefix(result.Reason, "step 1, action: zero:  , not UTF-8: , long: ää"), result.Reason)
		require.True(t, strings.HasSuffix(result.Reason, "ä"), "cut within a character")
		require.Greater(t, len(result.Reason), 500)
		require.Equal(t, []string{"a0", "c0"}, all.of(s.GID))
	})
}
