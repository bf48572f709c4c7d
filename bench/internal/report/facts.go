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

// factsPart returns nil if there are no facts.
func factsPart(title string, f facts) *document.Part {
	if len(f) == 0 {
		return nil
	}
	return &document.Part{Title: title, Facts: f}
}

func loadFacts(s result.Summary) (f facts) {
	l := s.Load
	if l.Mode == result.Open {
		f.add("open loop", fmt.Sprintf("%s/s offered, %s/s achieved, for %s s, at most %s in flight",
			format.Optional(l.OfferedPerS, format.Number), format.Number(l.AchievedPerS), format.Number(s.Run.DurationS), format.Count(int64(l.InFlight))))
		if l.Changes() || l.Arrival == "poisson" {
			f.add("", fmt.Sprintf("%s, %s arrivals", l.Profile, l.Arrival))
		}
		if late := l.LatenessMS; late != nil {
			f.add("sent late", fmt.Sprintf("p99 %s ms, at most %s ms", format.Optional(late.P99, format.Number), format.Optional(late.Max, format.Number)))
		}
		f.add("delayed, dropped", fmt.Sprintf("%s waited for a place in flight, %s never sent",
			format.Optional(l.Delayed, format.Count), format.Optional(l.Dropped, format.Count)))
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

// costFacts has one line for each group of figures: CPU, bytes and operations, and what
// only a cluster has.
func costFacts(m result.Measurement) (f facts) {
	c, group := m.CostPerSaga, ""
	for _, field := range result.CostFields {
		if field.OfCluster() && field.Of(c) == nil {
			continue
		}
		figure := field.Short + " " + field.Missing(c)
		if x := field.Of(c); x != nil {
			figure = field.Short + " " + format.Number(*x)
		}
		if field.Group != group {
			group = field.Group
			name := group
			if field.Unit != "" {
				name += ", " + field.Unit
			}
			f.add(name, figure)
		} else {
			f[len(f)-1].Value += ", " + figure
		}
	}
	if x := m.Resources.StoreCPUImbalance; x != nil && c.StoreBusiestCPUUS != nil { // on the last line
		f[len(f)-1].Value += fmt.Sprintf(", %s × the mean", format.Ratio(*x))
	}
	return f
}

// checkFacts has one line for what the audit counted, and one for the promises.
func checkFacts(c result.Check) (f facts) {
	if c.Lost == nil {
		f.add("audit", "not done; "+format.Count(c.Acknowledged)+" acknowledged")
		return f
	}
	var counted, promises []string
	for _, count := range c.Counts() {
		text := format.Optional(count.N, format.Count) + " " + count.Name
		if count.Violation {
			promises = append(promises, text)
		} else {
			counted = append(counted, text)
		}
	}
	if c.Expired > 0 {
		counted = append(counted, format.Count(c.Expired)+" past retention")
	}
	if c.ForceStopped > 0 {
		counted = append(counted, format.Count(c.ForceStopped)+" stopped by force")
	}
	if c.LostWrites > 0 {
		counted = append(counted, format.Count(c.LostWrites)+" with lost writes")
	}
	f.add("sagas", strings.Join(counted, ", "))
	f.add("must be 0", strings.Join(promises, ", "))
	return f
}

func environmentFacts(r result.Run, e result.Environment) (f facts) {
	f.add("machine", e.Machine())
	f.add("software", e.Kernel+", "+e.Go)
	if limits := e.Limits(); limits != "" {
		f.add("cgroup limits", limits)
	}
	if cpus := e.CPUs.String(); cpus != "" {
		f.add("CPUs", cpus)
	}
	if d := e.StoreDisk; d != nil {
		f.add("store's disk", d.String())
	}
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
