package cli

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/store/open"
)

var logged = regexp.MustCompile(`level=(\w+) msg=("[^"]*"|\S+)`)

// requestFailed is the message of what was answered with 500. The log is the only place
// that has its cause, so it has ten of them in ten seconds.
const requestFailed = `"a request failed"`

// Of a store that is away the log says so once, and that it is back, however often it
// is asked for meanwhile.
func TestCoordinator_LogsAnOutageOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{open.Redis, open.MySQL, open.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := lab.Kinds[name].Start(t.Context(), lab.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, server.Stop()) })
			s := newProgram(t).start("coordinator", server.URL(), "--listen", "127.0.0.1:0")
			require.Equal(t, http.StatusOK, status(s.url+"/readyz"))
			ready := func(want int) func() bool { return func() bool { return status(s.url+"/readyz") == want } }
			require.NoError(t, server.Kill())
			require.Eventually(t, ready(http.StatusServiceUnavailable), 20*time.Second, 20*time.Millisecond)
			for away := time.Now(); time.Since(away) < 4*time.Second; { // what repeats itself does so each second
				require.Equal(t, http.StatusServiceUnavailable, status(s.url+"/readyz"))
				_, _ = fetch(t, s.url+"/api/dtmsvr/all", "")
			}
			require.NoError(t, server.Restart(t.Context()))
			require.Eventually(t, ready(http.StatusOK), 20*time.Second, 20*time.Millisecond)
			for _, again := range []string{"the store answers again", "due sagas are claimed again"} {
				require.Eventually(t, func() bool { return strings.Contains(s.err.String(), again) }, 20*time.Second, 20*time.Millisecond, again)
			}
			s.stop()
			seen := map[string]int{}
			for _, line := range logged.FindAllStringSubmatch(s.err.String(), -1) {
				seen[line[2]]++
				if line[2] != requestFailed {
					require.NotEqual(t, "ERROR", line[1], s.err)
				}
			}
			require.LessOrEqual(t, seen[requestFailed], 20, "ten in ten seconds: %v", s.err)
			delete(seen, requestFailed)
			for message, times := range seen {
				// Once; twice where a slow machine has the store miss its time once more.
				require.LessOrEqual(t, times, 2, "%s: %v", message, s.err)
			}
		})
	}
}
