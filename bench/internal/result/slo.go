package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/internal/format"
)

// DefaultErrorBudget is the share of requests that may fail in a valid run.
const DefaultErrorBudget = 0.001

// SLO is a service level objective.
type SLO struct {
	Latencies []LatencyGoal `json:"latencies"` // all must be met
	Errors    float64       `json:"errors"`    // share of requests that may fail
}

// LatencyGoal bounds one percentile of the latency from the due time.
type LatencyGoal struct {
	Percentile float64 `json:"percentile"` // for example 99 or 99.9
	MS         float64 `json:"ms"`
}

// Judge reports whether a measurement met the service level, and if not, why. It returns
// nil if that cannot be told, because too few requests were made.
func (o SLO) Judge(m Measurement) (met *bool, why string) {
	no := func(format string, args ...any) (*bool, string) { return new(bool), fmt.Sprintf(format, args...) }
	l := m.Load
	if share := float64(l.Errors) / float64(l.Requests); share > o.Errors {
		return no("errors: %.3g%% of the requests", 100*share)
	}
	if l.Overloaded() {
		return no("overloaded: %s/s achieved of %s/s", format.Number(l.AchievedPerS), format.Number(*l.OfferedPerS))
	}
	for _, limit := range o.Latencies {
		switch ms := m.LatencyMS.At(limit.Percentile); {
		case ms == nil:
			return nil, fmt.Sprintf("too few requests for %s: %s", limit.Name(), format.Count(l.Requests))
		case *ms > limit.MS:
			return no("%s is %s ms", limit.Name(), format.Number(*ms))
		}
	}
	yes := true
	return &yes, ""
}

// Allows reports whether the latency meets the goal if so many requests of a total are over
// its limit.
func (g LatencyGoal) Allows(over, total int64) bool {
	return float64(over) <= g.Allowed()*float64(total)
}

// Allowed returns the share of requests that may be over the limit.
func (g LatencyGoal) Allowed() float64 { return 1 - g.Percentile/100 }

// String writes the service level as "p99 ≤ 20 ms, errors ≤ 0.1%".
func (o SLO) String() string {
	return strings.TrimPrefix(o.LatencyLimits()+", errors ≤ "+format.Short(100*o.Errors)+"%", ", ")
}

// String writes the goal as "p99 ≤ 20 ms".
func (g LatencyGoal) String() string { return g.Name() + " ≤ " + format.Short(g.MS) + " ms" }

// Name writes the percentile as "p99.9".
func (g LatencyGoal) Name() string { return "p" + format.Short(g.Percentile) }

// LatencyLimits writes the service level without the errors.
func (o SLO) LatencyLimits() string {
	var all []string
	for _, l := range o.Latencies {
		all = append(all, l.String())
	}
	return strings.Join(all, ", ")
}

// ParseSLO reads a service level such as p99=20ms,errors=0.1%: bounds of latency
// percentiles, and the share of requests that may fail, by default DefaultErrorBudget.
func ParseSLO(text string) (SLO, error) {
	slo := SLO{Errors: DefaultErrorBudget}
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
		if err != nil || !strings.HasPrefix(key, "p") || !HasPercentile(percentile) {
			return slo, fmt.Errorf("slo: %q, want one of p50, p90, p95, p99, p99.9, p99.99 and errors, as p99=20ms,errors=0.1%%", part)
		}
		limit, err := time.ParseDuration(value)
		if err != nil || limit <= 0 {
			return slo, fmt.Errorf("slo: %s=%q, want a time, as 20ms", key, value)
		}
		goal := LatencyGoal{Percentile: percentile, MS: float64(limit) / float64(time.Millisecond)}
		if slices.ContainsFunc(slo.Latencies, func(g LatencyGoal) bool { return g.Percentile == percentile }) {
			return slo, fmt.Errorf("slo: %s=%q: %s has a limit already", key, value, goal.Name())
		}
		slo.Latencies = append(slo.Latencies, goal)
	}
	if len(slo.Latencies) == 0 {
		return slo, fmt.Errorf("slo: %q bounds no latency, as p99=20ms does", text)
	}
	return slo, nil
}
