package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/memstore"
)

func TestSubmit_HundredAtOnceHalfWithAnotherBody(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, nil)
		const each = 50
		var bodies [2]string
		for i := range bodies {
			path := fmt.Sprintf("/ok/%d", i)
			text, err := json.Marshal(at.sagaOf("contended", m{"wait_result": true}, [2]string{path, path}, [2]string{path, path}))
			require.NoError(t, err)
			bodies[i] = string(text)
		}
		var answers [2][each]response
		var all sync.WaitGroup
		for n := range each {
			for i, body := range bodies {
				all.Go(func() { answers[i][n] = at.post("/api/dtmsvr/submit", body) })
			}
		}
		all.Wait()

		won := 0
		if answers[1][0].status == http.StatusOK {
			won = 1
		}
		for n := range each {
			require.Equal(t, response{http.StatusOK, `{"dtm_result":"SUCCESS"}`}, answers[won][n])
			require.Equal(t, http.StatusConflict, answers[1-won][n].status)
			require.Contains(t, answers[1-won][n].body, `"dtm_result":"FAILURE"`)
		}
		path := fmt.Sprintf("/ok/%d", won)
		require.Equal(t, []string{"01 action " + path, "02 action " + path}, at.branches.names())
	})
}

func TestSubmit_CallsBranchesAsAsked(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), nil)
	body := at.sagaOf("calls", m{"wait_result": true, "branch_headers": m{"X-Tenant": "t1"}},
		[2]string{"/ok/a?kind=x", ""}, [2]string{"/refuse/b", "/ok/b-back"})
	body["payloads"] = []string{`{"amount":30}`, ""}
	require.Equal(t, http.StatusConflict, at.submit(body).status)

	calls := at.branches.all()
	require.Len(t, calls, 4)
	for i, want := range []branchCall{
		{Method: "POST", Path: "/ok/a", BranchID: "01", Op: "action", Body: `{"amount":30}`},
		{Method: "GET", Path: "/refuse/b", BranchID: "02", Op: "action"},
		{Method: "GET", Path: "/ok/b-back", BranchID: "02", Op: "compensate"},
		{Method: "POST", Path: "/", BranchID: "01", Op: "compensate", Body: `{"amount":30}`},
	} {
		require.Equal(t, "t1", calls[i].Header.Get("X-Tenant"))
		want.Header, want.GID, want.TransType = calls[i].Header, "calls", "saga"
		require.Equal(t, want, calls[i])
	}
}

func TestSubmit_StopsWaitingAfterMaxWait(t *testing.T) {
	t.Parallel()
	for says, tt := range map[string]struct {
		maxWait        time.Duration
		requestTimeout int
	}{
		"no end within 2s":                  {2 * time.Second, 0},
		"no end before its request_timeout": {time.Minute, 3},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			at := start(t, memstore.New(time.Hour), func(_ *Config, s *saga.Config) { s.MaxWait = tt.maxWait })
			body := at.sagaOf("slow", m{"wait_result": true, "request_timeout": tt.requestTimeout}, [2]string{"/held", "/ok"})
			r := at.submit(body)
			require.Equal(t, http.StatusTooEarly, r.status)
			require.Contains(t, r.body, `"dtm_result":"ONGOING"`)
			require.Contains(t, r.body, says)

			at.branches.release()
			at.until("slow", status("succeed"))
			require.Equal(t, http.StatusOK, at.submit(body).status)
		})
	}
}

func TestSubmit_TakesPayloadsBeforeData(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), nil)
	r := at.submit(m{
		"gid": "mixed", "trans_type": "saga", "wait_result": true, "payloads": []string{"1"},
		"steps": []m{{"action": at.branch + "/ok", "data": "7"}, {"action": at.branch + "/ok", "data": "2"}},
	})
	require.Equal(t, http.StatusOK, r.status, r.body)
	calls := at.branches.all()
	require.Equal(t, []string{"1", "2"}, []string{calls[0].Body, calls[1].Body})
}

func TestSubmit_KeepsAnOrderThatIsNotConcurrent(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), nil)
	r := at.submit(at.sagaOf("serial", m{
		"wait_result": true, "concurrent": true, // which alone means nothing, as with dtm
		"custom_data": `{"concurrent":false,"orders":{"1":[0]}}`,
	}, [2]string{"/ok/a", ""}, [2]string{"/ok/b", ""}))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Equal(t, []string{"01 action /ok/a", "02 action /ok/b"}, at.branches.names())
	require.False(t, at.query("serial").Transaction.Concurrent)
}

func TestSubmit_RefusesLargeBodies(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), nil)
	long := strings.Repeat(" ", MaxBodyBytes+1)
	r := at.post("/api/dtmsvr/submit", long)
	require.Equal(t, response{http.StatusRequestEntityTooLarge, `{"message":"body: more than 8388608 bytes"}`}, r)
	chunked := struct{ *strings.Reader }{strings.NewReader(long)} // of a length that the client does not see
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.url+"/api/dtmsvr/submit", chunked)
	require.NoError(t, err)
	answered, err := at.client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answered.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, answered.StatusCode)

	body := at.sagaOf("large", m{"wait_result": true}, [2]string{"/ok", ""})
	body["payloads"] = []string{strings.Repeat("x", saga.MaxPayloadBytes+1)}
	r = at.submit(body)
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.body, "steps[0].payload: 1048577 bytes, at most 1048576")
	body["payloads"] = []string{strings.Repeat(`"`, saga.MaxPayloadBytes)} // as long as it may be, and all escaped
	require.Equal(t, http.StatusOK, at.submit(body).status)
}

// failing is a store whose writes, or reads, do not succeed.
type failing struct {
	store.Store
	writes, reads bool
}

var errAway = errors.New("connection refused")

func (f *failing) Apply(ctx context.Context, changes []store.Change) []error {
	if !f.writes {
		return f.Store.Apply(ctx, changes)
	}
	errs := make([]error, len(changes))
	for i := range errs {
		errs[i] = errAway
	}
	return errs
}

func (f *failing) Get(ctx context.Context, gid string) (store.Record, error) {
	if f.reads {
		return store.Record{}, errAway
	}
	return f.Store.Get(ctx, gid)
}

func (f *failing) List(ctx context.Context, q store.Query) (store.Page, error) {
	if f.reads {
		return store.Page{}, errAway
	}
	return f.Store.List(ctx, q)
}

func TestAPI_AnswersWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	at := start(t, &failing{Store: memstore.New(time.Hour), writes: true, reads: true}, nil)
	for _, wait := range []bool{false, true} {
		r := at.submit(at.sagaOf("lost", m{"wait_result": wait}, [2]string{"/ok", ""}))
		require.Equal(t, http.StatusInternalServerError, r.status)
		require.Contains(t, r.body, "the store did not confirm the saga")
		require.NotContains(t, r.body, "dtm_result")
	}
	for _, path := range []string{"query?gid=lost", "all?gid=lost", "all", "resetCronTime"} {
		r := at.get("/api/dtmsvr/" + path)
		require.Equal(t, response{http.StatusInternalServerError, `{"message":"the store does not answer as it should; the server's log has the details"}`}, r, path)
	}
	for _, path := range []string{"abort", "resetNextCronTime"} {
		r := at.post("/api/dtmsvr/"+path, `{"gid":"lost"}`)
		require.Equal(t, http.StatusInternalServerError, r.status, path)
	}
	require.Empty(t, at.branches.all())
}

func TestForceStop_IsForNobodyWithoutAnAdmin(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *saga.Config) { c.Admin = nil })
	r := at.do(http.MethodPost, "/api/dtmsvr/forceStop", `{"gid":"g"}`, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusForbidden, r.status)
}

func TestAbort_CompensatesWhatIsBeingCalled(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, nil)
		require.Equal(t, http.StatusOK, at.submit(at.sagaOf("under-way", nil,
			[2]string{"/ok/a", "/ok/a-back"}, [2]string{"/held/b", "/ok/b-back"}, [2]string{"/ok/c", "/ok/c-back"})).status)
		at.untilCalled(1)
		require.Equal(t, http.StatusOK, at.post("/api/dtmsvr/abort", `{"gid":"under-way"}`).status)
		require.Equal(t, "aborting", at.query("under-way").Transaction.Status)
		at.branches.release()
		at.until("under-way", status("failed"))
		require.Equal(t, []string{
			"01 action /ok/a", "02 action /held/b", "02 compensate /ok/b-back", "01 compensate /ok/a-back",
		}, at.branches.names())
		require.Equal(t, "by request", at.query("under-way").Transaction.RollbackReason)
	})
}
