package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
)

// auditLines are those of the log that hold all of this.
func (at *site) auditLines(fields ...string) (found []string) {
	for line := range strings.Lines(at.log.String()) {
		has := strings.Contains(line, "msg=audit ")
		for _, field := range fields {
			has = has && strings.Contains(line, field)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

func (at *site) requireAudited(fields ...string) {
	at.t.Helper()
	lines := at.auditLines(fields...)
	require.Len(at.t, lines, 1, "%v in\n%s", fields, at.log)
	require.Contains(at.t, lines[0], "from=127.0.0.1:")
}

const oldToken, nextToken = "the-old-token-of-all", "the-next-token-of-all"

func TestAudit_SaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), everything, withToken)
	user, admin := "role=user token="+secret.New(theToken).Fingerprint(), "role=admin token="+secret.New(theAdminToken).Fingerprint()
	for _, gid := range []string{"a", "b", "c", "d"} {
		require.NoError(t, at.server.coordinator.Submit(t.Context(), &saga.Saga{
			GID: gid, RetryInterval: saga.MaxRetryInterval, Steps: []saga.Step{{Action: "http://127.0.0.1:1/nobody"}},
		}))
		at.heldUp(gid)
	}
	const api = "/api/dtmsvr/"
	one := func(gid string) string { return fmt.Sprintf(`{"gid":%q}`, gid) }
	at.do(http.MethodPost, api+"resetNextCronTime", one("a"))
	at.requireAudited("level=INFO", "action=retry gid=a outcome=done status=200 "+user)
	at.do(http.MethodPost, api+"abort", one("a"))
	at.requireAudited("level=INFO", "action=abort gid=a outcome=done status=200 "+user)
	at.do(http.MethodPost, api+"abort", one("nobody"))
	at.requireAudited("level=WARN", "action=abort gid=nobody outcome=refused status=404 "+user)
	at.asAdmin(http.MethodPost, api+"forceStop", one("b"))
	at.requireAudited("action=force-stop gid=b outcome=done status=200 "+admin, "level=INFO")
	at.do(http.MethodPost, api+"forceStop", one("c"))
	at.requireAudited("level=WARN", "action=force-stop outcome=refused status=403 "+user)
	at.get(api + "resetCronTime")
	at.requireAudited("action=retry-all outcome=done status=200 " + user)

	// The page: a login, and what is done with it.
	at.post("/ui/login", "token=wrong-wrong-wrong-wrong", nil)
	at.requireAudited("level=WARN", "action=login outcome=refused status=401 from=")
	cookie := at.login()
	at.requireAudited("action=login outcome=done status=303 " + user)
	at.post("/ui/sagas/c/retry", "", cookie)
	at.requireAudited("action=retry gid=c outcome=done status=303 " + user)
	at.post("/ui/sagas/d/abort", "", cookie)
	at.requireAudited("action=abort gid=d outcome=done status=303 " + user)
	at.post("/ui/sagas/d/abort", "", nil)
	at.requireAudited("action=request gid=d outcome=refused status=401 from=", "path=/ui/sagas/d/abort")
	at.post("/ui/logout", "", cookie)
	at.requireAudited("action=logout outcome=done status=303 " + user)

	// Who is not let in, and to what.
	at.ask(at.bare(http.MethodGet, "/metrics?token=topsecret"))
	at.requireAudited("level=WARN", "action=request outcome=refused status=401 from=", "method=GET path=/metrics")
	at.get(profilePath + "cmdline")
	at.requireAudited("action=request outcome=refused status=403 "+user, "path=/debug/pprof/cmdline")

	// Submits that are taken have a line only when that is asked for; others have.
	at.do(http.MethodPost, submitPath, submission())
	require.Empty(t, at.auditLines("action=submit"))
	at.do(http.MethodPost, submitPath, submission(action("http://10.0.0.1/")))
	at.requireAudited("action=submit gid=the-gid outcome=refused status=400 " + user)

	for _, confidential := range []string{theToken, theAdminToken, "wrong-wrong", "topsecret"} {
		require.NotContains(t, at.log.String(), confidential)
	}
}

func TestAudit_OfSubmits_WhenAskedFor(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.AuditSubmits = true })
	at.do(http.MethodPost, submitPath, submission())
	at.requireAudited("action=submit gid=the-gid outcome=done status=200 from=")
}

// Whoever has no token cannot fill the disk with the log, nor hide behind it what
// somebody else is refused.
func TestAudit_AFloodOfRefusals_IsCounted(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), withToken)
	const flood = 500
	began := time.Now()
	for range flood {
		at.ask(at.bare(http.MethodGet, "/metrics"))
	}
	require.LessOrEqual(t, len(at.auditLines("action=request")), mostLines(began))
	at.do(http.MethodPost, "/api/dtmsvr/forceStop", "{}")
	at.requireAudited("action=force-stop")
	require.EqualValues(t, flood, at.scrape()["sagabench_requests_refused_total"])
}

// What a client writes does not become a line of its own, nor a long one.
func TestAudit_IsNotForged(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	at.do(http.MethodPost, "/api/dtmsvr/abort", `{"gid":"x\nlevel=INFO msg=audit action=abort gid=other"}`)
	at.do(http.MethodPost, "/api/dtmsvr/abort", `{"gid":"`+strings.Repeat("y", 1<<20)+`"}`)
	require.Len(t, at.auditLines("action=abort"), 2)
	for _, line := range at.auditLines("action=abort") {
		require.True(t, strings.HasPrefix(line, "time="), line)
		require.Less(t, len(line), 1000)
	}
}

// A token is replaced without a moment in which clients are refused.
func TestAuth_TakesEachOfSeveralTokens(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s, func(c *Config, _ *Deps) { c.Tokens = secret.NewTokens(nextToken + " " + oldToken) })
	for token, status := range map[string]int{
		oldToken: http.StatusOK, nextToken: http.StatusOK, nextToken + " " + oldToken: http.StatusUnauthorized, theToken: http.StatusUnauthorized,
	} {
		request := at.bare(http.MethodGet, "/metrics")
		request.Header.Set("Authorization", "Bearer "+token)
		require.Equal(t, status, at.ask(request).status, token)
		r := at.post("/ui/login", "token="+strings.ReplaceAll(token, " ", "+"), nil)
		require.Equal(t, status == http.StatusOK, r.status == http.StatusSeeOther, token)
		branches := BranchesOf("", secret.New(token)) // sagas hold the key that was made of the old one
		require.Equal(t, status, at.ask(at.bare(http.MethodGet, branches.Action)).status, token)
	}
	request := at.bare(http.MethodGet, "/bench/saga?branches=http")
	request.Header.Set("Authorization", "Bearer "+oldToken)
	require.Equal(t, http.StatusOK, at.ask(request).status)
	require.Equal(t, 1, count(t, s))
	page, err := s.List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.NotContains(t, string(page.Records[0].Body), nextToken)
}
