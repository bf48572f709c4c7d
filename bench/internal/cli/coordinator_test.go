package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// theToken is what the tests' servers want to be shown.
const theToken = "the-token-of-the-tests"

const tokenVariable = "SAGABENCH_SERVER_TOKEN=" + theToken

// fetch gives the status and the body of a GET, shown the token.
func fetch(t *testing.T, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestServerConfig_ListensOnLoopback(t *testing.T) {
	t.Parallel()
	a := app{options: defaults()}
	require.Equal(t, server.ListenBench, a.serverConfig(true).Listen)
	require.Equal(t, "127.0.0.1:36789", a.serverConfig(false).Listen)
	a.options.Server.Listen = "127.0.0.1:1"
	require.Equal(t, "127.0.0.1:1", a.serverConfig(false).Listen)
}

func TestServerConfig_WaitsAsLongAsIsSet(t *testing.T) {
	t.Parallel()
	a := app{options: defaults()}
	require.Equal(t, 10*time.Second, a.serverConfig(false).MaxWait)
	a.options.Server.MaxWait = time.Minute
	require.Equal(t, time.Minute, a.serverConfig(false).MaxWait)
}

func TestCoordinator_ServesDTMsAPIAlone(t *testing.T) {
	t.Parallel()
	s := newProgram(t).start("coordinator", "pebble", "--listen", "127.0.0.1:0")
	for path, want := range map[string]int{
		"/api/ping": http.StatusOK, "/api/dtmsvr/version": http.StatusOK, "/api/dtmsvr/newGid": http.StatusOK, "/api/metrics": http.StatusOK,
		"/metrics": http.StatusOK, "/healthz": http.StatusOK, "/ui": http.StatusOK, "/": http.StatusOK,
		"/bench/saga": http.StatusNotFound, "/bench/branch/action": http.StatusNotFound,
	} {
		status, body := fetch(t, s.url+path, "")
		require.Equal(t, want, status, path+": "+body)
	}
	_, metrics := fetch(t, s.url+"/api/metrics", "")
	require.Contains(t, metrics, "sagabench_compensations_refused_total 0")
	require.NotContains(t, metrics, "sagabench_branch_calls_total")
	require.Contains(t, s.out.String(), s.url+"/api/dtmsvr")
	require.NotContains(t, s.out.String(), "vegeta")
}

func TestCoordinator_OpenToOthers_WantsTheToken(t *testing.T) {
	t.Parallel()
	s := newProgram(t, tokenVariable).start("coordinator", "pebble", "--listen", ":0")
	status, _ := fetch(t, s.url+"/api/dtmsvr/version", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = fetch(t, s.url+"/api/dtmsvr/version", theToken)
	require.Equal(t, http.StatusOK, status)
}

func TestServe_WithAToken_PrintsNoSecret(t *testing.T) {
	t.Parallel()
	s := newProgram(t, tokenVariable).serve("pebble", "--listen", "127.0.0.1:0")
	line, err := s.out.find(soon(t), "drive it:")
	require.NoError(t, err)
	require.Contains(t, line, `-header="Authorization: Bearer ${SAGABENCH_SERVER_TOKEN%% *}"`)
	s.stop()
	require.NotContains(t, s.out.String()+s.err.String(), theToken)
}

// load drives a server that runs, and gives its summary.
func (p program) load(args ...string) (result.Summary, outcome) {
	p.t.Helper()
	got := p.run(append([]string{"load", "--json", "--duration", "500ms", "--warmup", "100ms", "--in-flight", "16", "--out", filepath.Join(p.t.TempDir(), "result")}, args...)...)
	var s result.Summary
	require.NoError(p.t, json.Unmarshal([]byte(got.stdout), &s), got.stderr)
	requireKeys(p.t, got.stdout)
	require.Positive(p.t, s.Check.Acknowledged)
	require.Zero(p.t, s.Load.Errors, s.Load.ErrorsByKind)
	return s, got
}

func TestLoad_DTM_DrivesACoordinator(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	p := newProgram(t, "SAGABENCH_REDIS_URL="+redis.URL())
	s := p.start("coordinator", "redis", "--listen", "127.0.0.1:0")
	for _, target := range []string{s.url, s.url + "/", s.url + "/api/dtmsvr"} {
		got, _ := p.load("redis", "--protocol", "dtm", "--target", target, "--payload", "50", "--steps", "3")
		require.Equal(t, got.Check.Acknowledged, p.ended(got), "every gid that was told is in the store")
		require.Zero(t, *got.Check.Lost+*got.Check.BothOutcomes+*got.Check.Uncompensated+*got.Check.Unfinished)
		if got.Load.Requests > 0 { // else a busy machine answered none in the measured part
			require.NotNil(t, got.CostPerSaga.AppCPUUS)
			require.Positive(t, *got.CostPerSaga.StoreRoundTrips)
		}
		require.Contains(t, got.Run.Topology, "dtm's API")
	}
	refused := p.run("load", "--protocol", "dtm", "--target", s.url, "--branches", "http")
	require.Equal(t, exitError, refused.code)
	require.Contains(t, lastLine(refused.stderr), "has no branches to call (404 Not Found)")
}

// ended is how many sagas of the load are in the store: those that were there
// before are among its warnings.
func (p program) ended(s result.Summary) int64 {
	p.t.Helper()
	total := *s.Check.Terminal
	before := int64(0)
	for _, warning := range s.Validity.Warnings {
		if n, ok := strings.CutPrefix(warning, "leftovers: the store held "); ok {
			digits, _, _ := strings.Cut(n, " ")
			require.NoError(p.t, json.Unmarshal([]byte(strings.ReplaceAll(digits, ",", "")), &before))
		}
	}
	return total - before
}

func TestLoad_DTM_CallsTheBranchesOfABenchServer(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"open": nil, "with a token": {tokenVariable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, env...)
			s := p.serve("pebble", "--listen", "127.0.0.1:0")
			got, out := p.load("--protocol", "dtm", "--target", s.url, "--branches", "http", "--fail", "0.5")
			require.Nil(t, got.Check.Terminal, "nobody knows the store")
			require.Nil(t, got.CostPerSaga.StoreCPUUS)
			require.NotContains(t, out.stdout+out.stderr, theToken)
			token := ""
			if env != nil {
				token = theToken
			}
			_, metrics := fetch(t, s.url+"/metrics", token)
			require.Regexp(t, `sagabench_branch_calls_total\{op="compensate"\} [1-9]`, metrics)
			require.Regexp(t, `sagabench_sagas_total\{outcome="failed"\} [1-9]`, metrics)
			_, out = p.load("--target", s.url)
			require.NotContains(t, out.stdout+out.stderr, theToken)
		})
	}
}
