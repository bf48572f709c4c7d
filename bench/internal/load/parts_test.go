package load

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/report"
	"sagabench/store"
)

func TestClassify_BelievesOnlyABodyWithAResultAndAGid(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"dtm_result":"SUCCESS","gid":"a-1"}`:                             "a-1",
		"{ \"gid\" :\n \"aZ0_-\", \"b\":2, \"dtm_result\":\"SUCCESS\"}":    "aZ0_-",
		`{"dtm_result":"SUCCESS","gid":17}`:                                "",
		`{"dtm_result":"SUCCESS","gid":"a-1`:                               "",
		`{"dtm_result":"SUCCESS","gid"`:                                    "",
		`{"dtm_result":"SUCCESS","gid":""}`:                                "",
		`{"dtm_result":"SUCCESS","gid":"a b"}`:                             "",
		`{"dtm_result":"SUCCESS","gid":"a\nS b"}`:                          "",
		`{"dtm_result":"SUCCESS","gid":"{a}"}`:                             "",
		`{"dtm_result":"SUCCESS","gid":"` + strings.Repeat("a", 65) + `"}`: "",
		`{"dtm_result":"FAILURE","gid":"a-1"}`:                             "",
		`{"gid":"a-1"}`:                                                    "",
		``:                                                                 "",
	} {
		outcome, gid, kind := classify(&vegeta.Result{Code: 200, Body: []byte(body)}, "")
		require.Equal(t, want, gid, body)
		if want == "" {
			require.Equal(t, kindNoResult, kind, body)
		} else {
			require.Empty(t, kind, body)
			require.Equal(t, store.StatusSucceeded, outcome, body)
		}
	}
}

func TestKindOf_KnowsWhatOtherTestsCannotProvoke(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for want, err := range map[string]error{
		kindNoHost:      &net.DNSError{Err: "no such host", Name: "x.invalid", IsNotFound: true},
		kindUnreachable: dial(syscall.EHOSTUNREACH),
		kindFiles:       dial(syscall.EMFILE),
		kindNoPort:      dial(syscall.EADDRNOTAVAIL),
		kindTimeout:     dial(syscall.ETIMEDOUT),
		// Of a connection that was closed just as it was taken.
		kindClosed: errors.New("http: server closed idle connection"),
		kindOther:  errors.New("anything else"),
	} {
		require.Equal(t, want, kindOf(fmt.Errorf("send: %w", err)))
	}
}

func TestReadJournal_RefusesATornLine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"S a\nx b\n", "S a\nS\n", "S a\nS b c\n"} {
		err := readJournal(strings.NewReader(text), func(string, store.Status) error { return nil })
		require.ErrorContains(t, err, "line 2", text)
	}
}

func TestOpenPacer_SchedulesEveryRequestOnce(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.3, 1, 7, 333.3, 9999, 1e5} {
		p := openPacer{rate: rate}
		for _, d := range []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second} {
			n := p.scheduled(d)
			require.Positive(t, n)
			require.Less(t, p.due(uint64(n-1)), d)
			require.GreaterOrEqual(t, p.due(uint64(n)), d)
			require.InDelta(t, rate*d.Seconds(), n, 1)
		}
	}
}

func TestAchieved_IsTheSteadyRate(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	at := func(start, length time.Duration, n int64) report.Interval {
		return report.Interval{Start: began.Add(start), Length: length, Acknowledged: n}
	}
	const s = time.Second
	for name, c := range map[string]struct {
		intervals []report.Interval
		rate      float64
		shortest  time.Duration
		want      float64
	}{
		"nothing":             {nil, 0, 0, 0},
		"closed, steady":      {[]report.Interval{at(0, s, 1000), at(s, s, 1000)}, 0, 0, 1000},
		"closed, a straggler": {[]report.Interval{at(0, s, 1000), at(s, s, 1000), at(2*s, 5*s, 1)}, 0, 0, 1000},
		"open, slow but keeping up": {
			[]report.Interval{at(0, s, 700), at(s, s, 1000), at(2*s, 300*time.Millisecond, 300)}, 1000, 300 * time.Millisecond, 1000,
		},
		"open, half of it": {[]report.Interval{at(0, s, 500), at(s, s, 500), at(2*s, s, 500), at(3*s, s, 500)}, 1000, time.Millisecond, 500},
	} {
		require.InEpsilon(t, c.want+1, 1+achieved(c.intervals, began, c.rate, c.shortest), 0.005, name)
	}
}
