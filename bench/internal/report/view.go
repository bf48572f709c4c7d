package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sagabench/store"
)

// view is a summary in words, before it is laid out as text or as a page.
type view struct {
	Verdict  string // empty when the result is valid
	Headline string
	Outcome  string // what became of the acknowledged sagas
	Latency  table
	Findings []section
	Warnings []string
	Details  []section
	Command  string
}

type table struct {
	Title   string
	Columns []string
	Rows    []tableRow
}

type tableRow struct {
	Name  string
	Cells []string
}

type section struct {
	Title string
	Rows  []row
}

type row struct{ Name, Value string }

func newView(s Summary, dir string) view {
	v := view{
		Headline: headline(s),
		Outcome:  outcome(s.Check),
		Latency:  latencyTable(s),
		Findings: []section{
			{"Cost per saga", costRows(s.CostPerSaga)},
			{"Check", checkRows(s.Check)},
		},
		Warnings: s.Validity.Warnings,
		Details: []section{
			{"Load", loadRows(s)},
			{"Environment", environmentRows(s)},
			{"Run", runRows(s, dir)},
		},
		Command: s.Run.Command,
	}
	if !s.Validity.Valid {
		v.Verdict = "NOT VALID: the warnings below say why; do not quote these numbers"
	}
	return v
}

// headline is the result in one line.
func headline(s Summary) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s sagas/s on %s", number(s.Load.AchievedPerS), cmp.Or(s.Run.Store.Driver, "an unknown store"))
	if d := durability(s.Run.Store.Durability); d != "" {
		fmt.Fprintf(&line, " (%s)", d)
	}
	switch p99 := s.LatencyMS.P99; {
	case s.Load.Overloaded():
		line.WriteString(", overloaded: no latency holds at this rate")
	case p99 != nil:
		fmt.Fprintf(&line, ", p99 %s ms", number(*p99))
	case s.LatencyMS.Max != nil:
		fmt.Fprintf(&line, ", slowest %s ms", number(*s.LatencyMS.Max))
	}
	if s.Load.OfferedPerS != nil {
		fmt.Fprintf(&line, ", %s/s offered", number(*s.Load.OfferedPerS))
	} else {
		fmt.Fprintf(&line, ", %d in flight", s.Load.InFlight)
	}
	return line.String()
}

func durability(class string) string {
	for d := store.D0; d <= store.D4; d++ {
		if d.String() == class {
			return class + ": " + d.Meaning()
		}
	}
	return class
}

func outcome(c Check) string {
	acknowledged := plural(c.Acknowledged, "saga") + " acknowledged, warm-up included"
	if c.Lost == nil {
		return acknowledged + "; the store was not audited"
	}
	var bad []string
	for _, finding := range c.violations() {
		bad = append(bad, fmt.Sprintf("%s %s", count(finding.n), finding.name))
	}
	if len(bad) == 0 {
		return acknowledged + "; none lost"
	}
	return acknowledged + "; " + strings.ToUpper(strings.Join(bad, ", "))
}

type violation struct {
	name string
	n    int64
}

// violations are the counts that must be zero and are not.
func (c Check) violations() []violation {
	var found []violation
	for _, v := range []struct {
		name string
		n    *int64
	}{{"lost", c.Lost}, {"with both outcomes", c.BothOutcomes}, {"uncompensated", c.Uncompensated}} {
		if v.n != nil && *v.n > 0 {
			found = append(found, violation{v.name, *v.n})
		}
	}
	return found
}

func latencyTable(s Summary) table {
	t := table{
		Title:   "Latency, ms",
		Columns: []string{"p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "mean"},
	}
	add := func(name string, l Latency) {
		cells := []string{}
		for _, x := range []*float64{l.P50, l.P90, l.P95, l.P99, l.P999, l.P9999, l.Max, l.Mean} {
			cells = append(cells, optional(x))
		}
		t.Rows = append(t.Rows, tableRow{name, cells})
	}
	if s.Load.Mode == Open {
		add("from the due time", s.LatencyMS)
	}
	add("from the send", s.ServiceMS)
	return t
}

func loadRows(s Summary) []row {
	l := s.Load
	rows := []row{{"closed loop", fmt.Sprintf("%s kept in flight for %s s", plural(int64(l.InFlight), "request"), number(s.Run.DurationS))}}
	if l.Mode == Open {
		rows = []row{{"open loop", fmt.Sprintf("%s/s offered, %s/s achieved, for %s s, at most %s in flight",
			optional(l.OfferedPerS), number(l.AchievedPerS), number(s.Run.DurationS), count(int64(l.InFlight)))}}
		rows = append(rows, row{"late, dropped", fmt.Sprintf("%s sent over %d ms late, %s never sent",
			optionalCount(l.Late), LateAfter.Milliseconds(), optionalCount(l.Dropped))})
	}
	rows = append(rows, row{"requests", fmt.Sprintf("%s, %s", count(l.Requests), plural(l.Errors, "error"))})
	for _, kind := range errorKinds(l) {
		rows = append(rows, row{"", kind})
	}
	c := s.Run.Scenario
	saga := fmt.Sprintf("%s, %s branches", plural(int64(c.Steps), "step"), c.Branches)
	if c.Payload > 0 {
		saga += fmt.Sprintf(", %s of payload a step", plural(int64(c.Payload), "byte"))
	}
	if c.Fail > 0 {
		saga += fmt.Sprintf(", %.4g%% of them asked to fail", 100*c.Fail)
	}
	return append(rows, row{"saga", saga})
}

func costRows(c Cost) []row {
	var rows []row
	var missing []string
	for _, item := range []struct {
		name, unit string
		x          *float64
	}{
		{"store CPU", " µs", c.StoreCPUUS},
		{"app CPU", " µs", c.AppCPUUS},
		{"load CPU", " µs", c.LoadCPUUS},
		{"to the store", " bytes", c.StoreBytesIn},
		{"from the store", " bytes", c.StoreBytesOut},
		{"kept in the store", " bytes", c.StoreMemoryBytes},
		{"store calls", "", c.StoreCalls},
		{"store round trips", "", c.StoreRoundTrips},
		{"store fsyncs", "", c.StoreFsyncs},
	} {
		if item.x == nil {
			missing = append(missing, item.name)
			continue
		}
		rows = append(rows, row{item.name, number(*item.x) + item.unit})
	}
	if len(missing) > 0 {
		rows = append(rows, row{"not measured", strings.Join(missing, ", ")})
	}
	return rows
}

func checkRows(c Check) []row {
	rows := []row{{"acknowledged", count(c.Acknowledged)}}
	if c.Lost == nil {
		return append(rows, row{"audit", "not done"})
	}
	return append(rows,
		row{"terminal", optionalCount(c.Terminal)},
		row{"lost", optionalCount(c.Lost)},
		row{"both outcomes", optionalCount(c.BothOutcomes)},
		row{"uncompensated", optionalCount(c.Uncompensated)},
		row{"unfinished", optionalCount(c.Unfinished)})
}

func environmentRows(s Summary) []row {
	e := s.Environment
	machine := fmt.Sprintf("%s, %s, %s", e.CPU, plural(int64(e.Cores), "core"), size(e.Memory))
	if e.Governor != nil {
		machine += ", governor " + *e.Governor
	}
	rows := []row{
		{"machine", machine},
		{"software", e.Kernel + ", " + e.Go},
		{"topology", s.Run.Topology},
		{"store", cmp.Or(strings.TrimSpace(s.Run.Store.Driver+" "+s.Run.Store.Version), "unknown")},
	}
	if len(e.Versions) > 0 {
		rows = append(rows, row{"versions", pairs(e.Versions, " ")})
	}
	if len(s.Run.Store.Settings) > 0 {
		rows = append(rows, row{"store settings", pairs(s.Run.Store.Settings, "=")})
	}
	return rows
}

func runRows(s Summary, dir string) []row {
	rows := []row{
		{"id", s.Run.ID},
		{"started", s.Run.Started.UTC().Format(time.RFC3339)},
	}
	if s.Run.Commit != nil {
		rows = append(rows, row{"commit", *s.Run.Commit})
	}
	if dir != "" {
		rows = append(rows, row{"files", dir})
	}
	return rows
}

func pairs(m map[string]string, separator string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+separator+m[name])
	}
	return strings.Join(list, ", ")
}
