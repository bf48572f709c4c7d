package cli

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

var logged = regexp.MustCompile(`level=(\w+) msg=("[^"]*"|\S+)`)

// requestFailed is the message of what was answered with 500.
const requestFailed = `"a request failed"`

// leftOut is the message that stands for more of the same.
const leftOut = `"more of the same was left out of the log"`

// outages are the messages of the beginning of one, with those of its end.
var outages = map[string]string{
	`"the store does not answer"`:                                `"the store answers again"`,
	`"claiming due sagas failed; trying again"`:                  `"due sagas are claimed again"`,
	`"dropping sagas past their retention failed; trying again"`: `"sagas past their retention are dropped again"`,
}

// awaitReady waits for a status of /readyz.
func (s *running) awaitReady(want int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return status(s.url+"/readyz") == want }, patience, 20*time.Millisecond, want)
}

// requireOutagesLoggedOnce stops a coordinator whose store was away and is back. Its log says
// once that an outage begins and once that it ends. On a slow machine there are several: a
// store that answers may miss its time.
func (s *running) requireOutagesLoggedOnce() {
	s.t.Helper()
	s.awaitReady(http.StatusOK)
	for _, again := range []string{"the store answers again", "due sagas are claimed again"} {
		require.Eventually(s.t, func() bool { return strings.Contains(s.err.String(), again) }, patience, 20*time.Millisecond, again)
	}
	s.stop()
	away := map[string]bool{} // by the message that ends it
	for _, line := range logged.FindAllStringSubmatch(s.err.String(), -1) {
		level, message := line[1], line[2]
		end, begins := outages[message]
		switch {
		case message == requestFailed || message == leftOut: // package server bounds how many there are
		case begins:
			require.False(s.t, away[end], "twice without an end: %s\n%v", message, s.err)
			away[end] = true
		default:
			require.True(s.t, away[message], "what is no outage, or one without a beginning: %s\n%v", message, s.err)
			away[message] = false
		}
		require.True(s.t, level != "ERROR" || message == requestFailed, s.err)
	}
}
