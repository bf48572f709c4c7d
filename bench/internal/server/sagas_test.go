package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/environment"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
)

func TestRunSaga_AnswersWhenTheSagaHasEnded(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s)
		seen := map[string]bool{}
		for _, r := range []response{
			at.get("/bench/saga"),
			at.get("/bench/saga?steps=5&branches=empty&payload=0&fail=0"),
			at.do(http.MethodPost, "/bench/saga?steps=1", "a body is ignored"),
		} {
			require.Equal(t, http.StatusOK, r.status, r.body)
			got := r.reply(t)
			require.Equal(t, fmt.Sprintf(`{"dtm_result":"SUCCESS","gid":"%s"}`, got.GID), r.body)
			require.False(t, seen[got.GID], "a gid of its own")
			seen[got.GID] = true
			record, err := s.Get(t.Context(), got.GID)
			require.NoError(t, err)
			require.Equal(t, store.StatusSucceeded, record.Status)
		}
		require.Equal(t, len(seen), count(t, s))
	})
}

func TestRunSaga_TakesItsDefaultsFromTheConfig(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s, func(c *Config, _ *Deps) { c.Scenario = Scenario{Steps: 3, Branches: BranchesHTTP, Payload: 10} })
	for query, marks := range map[string]store.Marks{"": "y-y-y-", "?steps=1": "y-"} {
		record, err := s.Get(t.Context(), at.get("/bench/saga"+query).reply(t).GID)
		require.NoError(t, err)
		require.Equal(t, marks, record.Marks)
	}
	require.EqualValues(t, 4, at.server.bench.branches.actions.Load())
}

func TestRunSaga_CompensatesWhatFails(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s)
		for _, c := range []struct {
			branches       string
			actions, undos int64
		}{
			{BranchesEmpty, 1, 0}, // the one that refuses has to be called
			{BranchesHTTP, 3, 3},
		} {
			actions, undos := at.server.bench.branches.actions.Load(), at.server.bench.branches.compensations.Load()
			r := at.get("/bench/saga?steps=3&fail=1&branches=" + c.branches)
			require.Equal(t, http.StatusConflict, r.status, r.body)
			got := r.reply(t)
			require.Equal(t, "FAILURE", got.Result)
			require.Contains(t, got.Message, "step 3, action: 409 Conflict")

			record, err := s.Get(t.Context(), got.GID)
			require.NoError(t, err)
			require.Equal(t, store.StatusFailed, record.Status)
			require.Equal(t, store.Marks("yyyyny"), record.Marks)
			info, err := saga.Read(record)
			require.NoError(t, err)
			require.Equal(t, info.State.Aborted, got.Message)
			require.Equal(t, c.actions, at.server.bench.branches.actions.Load()-actions)
			require.Equal(t, c.undos, at.server.bench.branches.compensations.Load()-undos)
		}
	})
}

func TestRunSaga_FailsTheShareItWasAskedFor(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	failed := 0
	const sagas = 200
	for range sagas {
		if r := at.get("/bench/saga?steps=1&fail=0.5"); r.status == http.StatusConflict {
			failed++
		} else {
			require.Equal(t, http.StatusOK, r.status, r.body)
		}
	}
	// Outside of this once in 10^12 runs.
	require.InDelta(t, sagas/2, failed, 50)
}

func TestRunSaga_SendsThePayloadToItsBranches(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s)
	for _, bytes := range []int{0, 1, 100, 1 << 20} {
		r := at.get(fmt.Sprintf("/bench/saga?steps=2&branches=http&payload=%d", bytes))
		require.Equal(t, http.StatusOK, r.status, r.body)
		record, err := s.Get(t.Context(), r.reply(t).GID)
		require.NoError(t, err)
		var body struct{ Steps []struct{ Payload string } }
		require.NoError(t, json.Unmarshal(record.Body, &body))
		require.Len(t, body.Steps, 2)
		require.Equal(t, payload(bytes), body.Steps[1].Payload)
	}
	require.EqualValues(t, 8, at.server.bench.branches.actions.Load())
}

func TestRunSaga_TakesSagasUpToTheLimits(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s)
	for _, query := range []string{"steps=1000", "steps=3&payload=1048576", "steps=1000&payload=4000"} {
		r := at.get("/bench/saga?" + query)
		require.Equal(t, http.StatusOK, r.status, r.body)
	}
	// Within the limit as asked for, beyond it as stored: the store says so.
	r := at.get("/bench/saga?steps=4&payload=1048576")
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.reply(t).Message, "body: ")
	require.Equal(t, 3, count(t, s))
}

func TestRunSaga_WritesNothingForAWrongParameter(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s)
	for query, want := range map[string]string{
		"steps=1001": "steps: 1001, must be 1 to 1000",
		"gid=me":     `"gid" is no parameter`,
		"fail=2":     "fail: 2, must be 0 to 1",
	} {
		r := at.get("/bench/saga?" + query)
		require.Equal(t, http.StatusBadRequest, r.status)
		require.Contains(t, r.reply(t).Message, want)
	}
	require.Zero(t, count(t, s))
}

func TestBranch_RefusesWhenAsked(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	for _, path := range []string{actionPath, compensatePath} {
		for _, r := range []response{
			at.get(path), at.get(path + "?gid=g&op=action"), at.do(http.MethodPost, path+"?gid=g", `"payload"`),
		} {
			require.Equal(t, http.StatusOK, r.status)
			require.Equal(t, `{"dtm_result":"SUCCESS"}`, r.body)
		}
		for _, r := range []response{
			at.get(path + "?refuse=true"), at.do(http.MethodPost, path+"?gid=g&refuse=true", `"payload"`),
		} {
			require.Equal(t, http.StatusConflict, r.status)
			require.Equal(t, "FAILURE", r.reply(t).Result)
		}
	}
	require.EqualValues(t, 5, at.server.bench.branches.actions.Load())
	require.EqualValues(t, 5, at.server.bench.branches.compensations.Load())
}

func TestBranch_LimitsItsBody(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	require.Equal(t, http.StatusOK, at.do(http.MethodPost, actionPath, strings.Repeat("x", 1<<20)).status)
	r := at.do(http.MethodPost, actionPath, strings.Repeat("x", 1<<20+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, r.status)
	require.Equal(t, "body: more than 1 MiB", r.reply(t).Message)
}

func TestServer_AnswersWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	for _, path := range []string{"/bench", "/bench/saga/", "/bench/saga/x", "/bench//saga", "/bench/./saga", "//", "/ui/sagas/", "/debug/pprof/", "/favicon.ico"} {
		r := at.get(path)
		require.Equal(t, http.StatusNotFound, r.status, path)
		require.Equal(t, "there is nothing at GET "+path, r.reply(t).Message)
	}
	require.Equal(t, http.StatusNotFound, at.do(http.MethodDelete, "/bench/saga", "").status)
	require.Equal(t, http.StatusNotFound, at.do(http.MethodPost, "/api/dtmsvr/submit/", "{}").status)
}

func TestBranch_SaysThatTheClientIsOnItsMachine(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	for id, want := range map[string]string{"": "", "of another machine": "", environment.BootID(): environment.BootID()} {
		request, err := http.NewRequest(http.MethodGet, at.server.URL()+actionPath, nil)
		require.NoError(t, err)
		request.Header.Set(HeaderMachine, id)
		response, err := at.send(request)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.status)
		require.Equal(t, want, response.header.Get(HeaderMachine))
	}
}
