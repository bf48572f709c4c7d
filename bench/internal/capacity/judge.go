package capacity

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
	"sagabench/internal/format"
)

// Judge says in m whether it kept the service level, and why not. It leaves open
// what cannot be told: of too few requests, or when the measurement is not valid.
func Judge(m *result.Step, slo result.SLO) {
	kept := func(is bool, why string, args ...any) { m.MeetsSLO, m.Why = &is, fmt.Sprintf(why, args...) }
	l := m.Load
	share := float64(l.Errors) / float64(l.Requests)
	switch {
	case !m.Validity.Valid:
		m.MeetsSLO, m.Why = nil, strings.Join(m.Validity.Warnings, "; ")
		return
	case share > slo.Errors:
		kept(false, "errors: %.3g%% of the requests", 100*share)
		return
	case l.Overloaded():
		kept(false, "overloaded: %s/s achieved of %s/s", format.Number(l.AchievedPerS), format.Number(*l.OfferedPerS))
		return
	}
	for _, goal := range slo.Latencies {
		switch ms := m.LatencyMS.At(goal.Percentile); {
		case ms == nil:
			m.MeetsSLO, m.Why = nil, fmt.Sprintf("%d requests are too few for %s", l.Requests, goal.Name())
			return
		case *ms > goal.MS:
			kept(false, "%s is %s ms", goal.Name(), format.Number(*ms))
			return
		}
	}
	kept(true, "")
}

// ParseSLO reads p99=20ms,errors=0.1%: bounds of percentiles of the latency, and
// the share of the requests that may fail. A share that is not given is that of any
// valid run.
func ParseSLO(text string) (result.SLO, error) {
	slo := result.SLO{Errors: validity.DefaultErrorBudget}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if key == "errors" {
			number, percent := strings.CutSuffix(value, "%")
			share, err := strconv.ParseFloat(number, 64)
			if percent {
				share /= 100
			}
			if err != nil || !(share >= 0 && share < 1) {
				return slo, fmt.Errorf("slo: errors=%q, want a share of the requests, as 0.1%%", value)
			}
			slo.Errors = share
			continue
		}
		percentile, err := strconv.ParseFloat(strings.TrimPrefix(key, "p"), 64)
		if err == nil && percentile == 999 { // as summary.json names it
			percentile = 99.9
		}
		if err != nil || !strings.HasPrefix(key, "p") || !result.HasPercentile(percentile) {
			return slo, fmt.Errorf("slo: %q, want one of p50, p90, p95, p99, p99.9, p99.99 and errors, as p99=20ms,errors=0.1%%", part)
		}
		limit, err := time.ParseDuration(value)
		if err != nil || limit <= 0 {
			return slo, fmt.Errorf("slo: %s=%q, want a time, as 20ms", key, value)
		}
		slo.Latencies = append(slo.Latencies, result.LatencyGoal{Percentile: percentile, MS: float64(limit) / float64(time.Millisecond)})
	}
	if len(slo.Latencies) == 0 {
		return slo, fmt.Errorf("slo: %q bounds no latency, as p99=20ms does", text)
	}
	return slo, nil
}
