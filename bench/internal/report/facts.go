package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// facts are a part's named values.
type facts []document.Fact

func (f *facts) add(name, value string) { *f = append(*f, document.Fact{Name: name, Value: value}) }

func loadFacts(s result.Summary) (f facts) {
	l := s.Load
	if l.Mode == result.Open {
		f.add("open loop", fmt.Sprintf("%s/s offered, %s/s achieved, for %s s, at most %s in flight",
			format.Optional(l.OfferedPerS, format.Number), format.Number(l.AchievedPerS), format.Number(s.Run.DurationS), format.Count(int64(l.InFlight))))
		if l.Changes() || l.Arrival == "poisson" {
			f.add("", fmt.Sprintf("%s, %s arrivals", l.Profile, l.Arrival))
		}
		f.add("late, dropped", fmt.Sprintf("%s sent over %d ms late, %s never sent",
			format.Optional(l.Late, format.Count), result.LateAfter.Milliseconds(), format.Optional(l.Dropped, format.Count)))
	} else {
		f.add("closed loop", fmt.Sprintf("%s kept in flight for %s s", format.Plural(int64(l.InFlight), "request"), format.Number(s.Run.DurationS)))
	}
	f.add("requests", fmt.Sprintf("%s, %s", format.Count(l.Requests), format.Plural(l.Errors, "error")))
	for _, kind := range l.ErrorKinds() {
		f.add("", kind)
	}
	f.add("saga", s.Run.Scenario.String())
	return f
}

func costFacts(c result.Cost) (f facts) {
	var missing []string
	for _, field := range result.CostFields {
		if field.Of(c) != nil {
			f.add(field.Label, field.Text(c))
		} else {
			missing = append(missing, field.Label)
		}
	}
	if len(missing) > 0 {
		f.add("not measured", strings.Join(missing, ", "))
	}
	return f
}

func checkFacts(c result.Check) (f facts) {
	if c.Lost == nil {
		f.add("acknowledged", format.Count(c.Acknowledged))
		f.add("audit", "not done")
		return f
	}
	for _, count := range c.Counts() {
		f.add(count.Name, format.Optional(count.N, format.Count))
	}
	if c.Expired > 0 {
		f.add("past retention", format.Count(c.Expired))
	}
	if c.ForceStopped > 0 {
		f.add("stopped by force", format.Count(c.ForceStopped))
	}
	return f
}

func environmentFacts(r result.Run, e result.Environment) (f facts) {
	f.add("machine", e.Machine())
	f.add("software", e.Kernel+", "+e.Go)
	f.add("topology", r.Topology)
	f.add("store", cmp.Or(strings.TrimSpace(r.Store.Driver+" "+r.Store.Version), "unknown"))
	if len(e.Versions) > 0 {
		f.add("versions", result.Pairs(e.Versions, " "))
	}
	if len(r.Store.Settings) > 0 {
		f.add("store settings", result.Pairs(r.Store.Settings, "="))
	}
	return f
}

func runFacts(r result.Run, dir string) (f facts) {
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
