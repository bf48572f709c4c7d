package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sagabench/internal/document"
)

// facts are a part's named values.
type facts []document.Fact

func (f *facts) add(name, value string) { *f = append(*f, document.Fact{Name: name, Value: value}) }

func loadFacts(s Summary) (f facts) {
	l := s.Load
	if l.Mode == Open {
		f.add("open loop", fmt.Sprintf("%s/s offered, %s/s achieved, for %s s, at most %s in flight",
			optional(l.OfferedPerS), number(l.AchievedPerS), number(s.Run.DurationS), count(int64(l.InFlight))))
		if l.Changes() || l.Arrival == "poisson" {
			f.add("", fmt.Sprintf("%s, %s arrivals", l.Profile, l.Arrival))
		}
		f.add("late, dropped", fmt.Sprintf("%s sent over %d ms late, %s never sent",
			optionalCount(l.Late), LateAfter.Milliseconds(), optionalCount(l.Dropped)))
	} else {
		f.add("closed loop", fmt.Sprintf("%s kept in flight for %s s", plural(int64(l.InFlight), "request"), number(s.Run.DurationS)))
	}
	f.add("requests", fmt.Sprintf("%s, %s", count(l.Requests), plural(l.Errors, "error")))
	for _, kind := range errorKinds(l) {
		f.add("", kind)
	}
	f.add("saga", s.Run.Scenario.words())
	return f
}

// words describe the saga.
func (c Scenario) words() string {
	saga := fmt.Sprintf("%s, %s branches", plural(int64(c.Steps), "step"), c.Branches)
	if c.Payload > 0 {
		saga += fmt.Sprintf(", %s of payload a step", plural(int64(c.Payload), "byte"))
	}
	if c.Fail > 0 {
		saga += fmt.Sprintf(", %.4g%% of them asked to fail", 100*c.Fail)
	}
	return saga
}

// costItem is one of the costs of a saga, by its name.
type costItem struct {
	name, unit string
	of         func(Cost) *float64
}

func costItems() []costItem {
	return []costItem{
		{"store CPU", " µs", func(c Cost) *float64 { return c.StoreCPUUS }},
		{"app CPU", " µs", func(c Cost) *float64 { return c.AppCPUUS }},
		{"load CPU", " µs", func(c Cost) *float64 { return c.LoadCPUUS }},
		{"to the store", " bytes", func(c Cost) *float64 { return c.StoreBytesIn }},
		{"from the store", " bytes", func(c Cost) *float64 { return c.StoreBytesOut }},
		{"kept in the store", " bytes", func(c Cost) *float64 { return c.StoreMemoryBytes }},
		{"store calls", "", func(c Cost) *float64 { return c.StoreCalls }},
		{"store round trips", "", func(c Cost) *float64 { return c.StoreRoundTrips }},
		{"store fsyncs", "", func(c Cost) *float64 { return c.StoreFsyncs }},
	}
}

func costFacts(c Cost) (f facts) {
	var missing []string
	for _, item := range costItems() {
		if x := item.of(c); x != nil {
			f.add(item.name, number(*x)+item.unit)
		} else {
			missing = append(missing, item.name)
		}
	}
	if len(missing) > 0 {
		f.add("not measured", strings.Join(missing, ", "))
	}
	return f
}

// checkItem is one of the audit's counts, by its name.
type checkItem struct {
	name string
	of   func(Check) *int64
}

func checkItems() []checkItem {
	return []checkItem{
		{"acknowledged", func(c Check) *int64 { return &c.Acknowledged }},
		{"terminal", func(c Check) *int64 { return c.Terminal }},
		{"lost", func(c Check) *int64 { return c.Lost }},
		{"both outcomes", func(c Check) *int64 { return c.BothOutcomes }},
		{"uncompensated", func(c Check) *int64 { return c.Uncompensated }},
		{"unfinished", func(c Check) *int64 { return c.Unfinished }},
	}
}

func checkFacts(c Check) (f facts) {
	if c.Lost == nil {
		f.add("acknowledged", count(c.Acknowledged))
		f.add("audit", "not done")
		return f
	}
	for _, item := range checkItems() {
		f.add(item.name, optionalCount(item.of(c)))
	}
	if c.Expired > 0 {
		f.add("past retention", count(c.Expired))
	}
	if c.ForceStopped > 0 {
		f.add("stopped by force", count(c.ForceStopped))
	}
	return f
}

// latencyItem is one of the latencies that are kept, by its name.
type latencyItem struct {
	name string
	of   func(Latency) *float64
}

func latencyItems() []latencyItem {
	return []latencyItem{
		{"p50", func(l Latency) *float64 { return l.P50 }},
		{"p90", func(l Latency) *float64 { return l.P90 }},
		{"p95", func(l Latency) *float64 { return l.P95 }},
		{"p99", func(l Latency) *float64 { return l.P99 }},
		{"p99.9", func(l Latency) *float64 { return l.P999 }},
		{"p99.99", func(l Latency) *float64 { return l.P9999 }},
		{"max", func(l Latency) *float64 { return l.Max }},
		{"mean", func(l Latency) *float64 { return l.Mean }},
	}
}

func environmentFacts(r Run, e Environment) (f facts) {
	f.add("machine", e.machine())
	f.add("software", e.Kernel+", "+e.Go)
	f.add("topology", r.Topology)
	f.add("store", cmp.Or(strings.TrimSpace(r.Store.Driver+" "+r.Store.Version), "unknown"))
	if len(e.Versions) > 0 {
		f.add("versions", pairs(e.Versions, " "))
	}
	if len(r.Store.Settings) > 0 {
		f.add("store settings", pairs(r.Store.Settings, "="))
	}
	return f
}

func (e Environment) machine() string {
	machine := fmt.Sprintf("%s, %s, %s", e.CPU, plural(int64(e.Cores), "core"), size(e.Memory))
	if e.Governor != nil {
		machine += ", governor " + *e.Governor
	}
	return machine
}

func runFacts(r Run, dir string) (f facts) {
	f.add("id", r.ID)
	f.add("started", r.Started.UTC().Format(time.RFC3339))
	if r.Commit != nil {
		f.add("commit", *r.Commit)
	}
	if dir != "" {
		f.add("files", dir)
	}
	return f
}

func pairs(m map[string]string, separator string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+separator+m[name])
	}
	return strings.Join(list, ", ")
}
