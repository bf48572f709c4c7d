package progress

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
)

func TestProgress_SaysHowARunStands(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Run{Display: Display{Out: &out}}
	half, quarter := 0.5, 0.25
	at := func(s int, warmingUp bool) load.Progress {
		return load.Progress{
			WarmingUp: warmingUp, Elapsed: time.Duration(s) * time.Second, Planned: 12 * time.Second,
			PerS: 1234, P50: 1500 * time.Microsecond, P99: 20 * time.Millisecond,
		}
	}
	p.show(at(1, true))
	p.sampled(result.Sample{AppCores: &half})
	p.show(at(1, false)) // another phase is said at once
	p.sampled(result.Sample{AppCores: &half, StoreCores: &quarter})
	p.show(at(2, false)) // too soon
	now := at(13, false)
	now.Errors = 7
	p.show(now)
	p.show(at(1, true)) // the next measurement
	require.Equal(t, []string{
		"warming up  11 s left: 1234 sagas/s, p50 1.50 ms, p99 20.00 ms",
		"measuring   11 s left: 1234 sagas/s, p50 1.50 ms, p99 20.00 ms, app 0.50 cores",
		"measuring    0 s left: 1234 sagas/s, p50 1.50 ms, p99 20.00 ms, 7 errors, app 0.50 cores, store 0.25 cores",
		"warming up  11 s left: 1234 sagas/s, p50 1.50 ms, p99 20.00 ms",
	}, strings.Split(strings.TrimSpace(out.String()), "\n"))
}

// A terminal has one line, which is removed in the end.
func TestProgress_RewritesTheLineOfATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Run{Display: Display{Out: &out, Terminal: true}}
	for _, s := range []time.Duration{3, 6, 13} {
		p.show(load.Progress{Elapsed: s * time.Second, Planned: 12 * time.Second, PerS: 1234})
	}
	p.status("auditing the store")
	require.Equal(t, []string{
		"", "measuring    9 s left [=====---------------] 1234 sagas/s, p50 0.00 ms, p99 0.00 ms",
		"measuring    6 s left [==========----------] 1234 sagas/s, p50 0.00 ms, p99 0.00 ms",
		"measuring    0 s left [====================] 1234 sagas/s, p50 0.00 ms, p99 0.00 ms",
		"auditing the store\n",
	}, strings.Split(regexp.MustCompile(`\x1b\[\??[0-9]*[a-zA-Z]`).ReplaceAllString(out.String(), ""), "\r"))
}
