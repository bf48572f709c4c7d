package microbench

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"sagabench/internal/document"
	"sagabench/internal/format"
	"sagabench/lua"
)

// Document lays the summary out. dir is the result directory.
func (s Summary) Document(dir string) document.Document {
	servers := s.Lua.Servers
	d := document.Document{Title: "The price of each script", Verdict: s.Validity.Verdict(), Headline: headline(servers[0]), Command: s.Run.Command}
	for _, another := range servers[1:] {
		d.Lead = append(d.Lead, headline(another))
	}
	lists := []document.Part{{Title: "Warnings", List: s.Validity.Warnings}, {Title: "Notes", List: s.Validity.Notes, Detail: true}}
	for _, one := range servers {
		for i, p := range one.parts() {
			p.Detail = i > 0
			if len(servers) > 1 {
				p.Title = one.Label() + ": " + p.Title
			}
			d.Parts = append(d.Parts, p)
		}
		lists = append(lists, document.Part{Title: "Not measured on " + one.Label(), List: one.NotMeasured, Detail: true})
	}
	d.Parts = slices.DeleteFunc(append(d.Parts, lists...), func(p document.Part) bool {
		return len(p.List) == 0 && (p.Table == nil || len(p.Table.Rows) == 0)
	})
	d.Parts = append(d.Parts, document.Part{Title: "Environment", Detail: true, Facts: []document.Fact{
		{Name: "machine", Value: fmt.Sprintf("%s, %d cores", s.Environment.CPU, s.Environment.Cores)},
		{Name: "software", Value: s.Environment.Kernel + ", " + s.Environment.Go},
		{Name: "topology", Value: s.Run.Topology},
		{Name: "started", Value: s.Run.Started.UTC().Format(time.RFC3339)},
		{Name: "files", Value: dir},
	}})
	return d
}

// Label tells servers apart.
func (r Result) Label() string {
	label := "Redis " + r.Server.Version
	if threads := r.Server.Settings["io-threads"]; threads != "" && threads != "1" {
		label += ", io-threads " + threads
	}
	if r.Server.Settings["cluster-enabled"] == "yes" {
		label += ", a master of a cluster"
	}
	return label
}

// headline is a server's result in one line.
func headline(r Result) string {
	if len(r.Comparisons) > 0 {
		return fmt.Sprintf("The scripts of another directory compared with ours on %s, %d rounds", r.Label(), r.Method.Rounds)
	}
	c := r.ceiling(base.batch(16))
	if c == nil {
		return "The scripts on " + r.Label()
	}
	line := fmt.Sprintf("One core of %s can carry %s sagas/s: %s µs for a saga of %d steps, 16 per call", r.Label(), c.PerS, format.Number(c.CPUUS.Median), c.Steps)
	if old := r.baseline(1); old != nil {
		line += fmt.Sprintf("; the baseline, one call per round trip, takes %s", old.CPUUS)
	}
	return line
}

// parts are the tables of one server.
func (r Result) parts() []document.Part {
	if len(r.Comparisons) > 0 {
		return []document.Part{r.comparisonTable()}
	}
	return []document.Part{
		r.priceTable(), r.baselineTable(), r.breakdownTable(), r.commandTable(), r.sizeTable(1), r.sizeTable(16),
	}
}

func table(title, note string, columns ...string) document.Part {
	p := document.Part{Title: title, Table: &document.Table{Columns: columns}}
	if note != "" {
		p.Text = []string{note}
	}
	return p
}

func addRow(p document.Part, name string, cells ...string) {
	p.Table.Rows = append(p.Table.Rows, document.Row{Name: name, Cells: cells})
}

// addScripts adds a row for each script with its price per saga in each shape.
func (r Result) addScripts(p document.Part, shapes []Shape) {
	for _, script := range lua.All() {
		var cells []string
		for _, s := range shapes {
			cell := format.Unknown
			if price := r.price(script.Name, s); price != nil {
				cell = format.Number(price.PerSagaUS)
			}
			cells = append(cells, cell)
		}
		addRow(p, script.Name, cells...)
	}
}

func (r Result) priceTable() document.Part {
	note := "Sagas per call / calls per round trip. A saga of 2 steps is saved, updated and completed once."
	if spread := r.spread(); spread > 0 {
		note += fmt.Sprintf(" The %.0f%% confidence interval of the typical price is %.0f%% wide.", 100*usual, 100*spread)
	}
	p := table("CPU of Redis, µs per saga", note)
	shapes := batchShapes()
	r.addScripts(p, shapes)
	var sums, rates, from, to []string
	for _, s := range shapes {
		p.Table.Columns = append(p.Table.Columns, fmt.Sprintf("%d/%d", s.Sagas, s.Pipeline))
		var price SagaPrice
		if c := r.ceiling(s); c != nil {
			price = c.SagaPrice
		}
		rate := price.PerS.cells()
		sums, rates, from, to = append(sums, price.CPUUS.cells()[0]), append(rates, rate[0]), append(from, rate[1]), append(to, rate[2])
	}
	addRow(p, "saga of 2 steps", sums...)
	addRow(p, "sagas/s of a core", rates...)
	addRow(p, "  from", from...)
	addRow(p, "  to", to...)
	return p
}

func (r Result) baselineTable() document.Part {
	p := table("Baseline and ours: one saga of 2 steps",
		"The baseline keeps JSON records under three keys and an index, and sends the text of its four scripts.",
		"CPU µs", "from", "to", "times ours", "from", "to", "sagas/s of a core", "calls", "bytes in", "bytes out")
	add := func(name string, price SagaPrice, ratio Estimate) {
		addRow(p, name, slices.Concat(price.CPUUS.cells(), ratio.cells(), []string{
			format.Number(price.PerS.Median), format.Number(price.Calls), format.Number(price.BytesIn), format.Number(price.BytesOut),
		})...)
	}
	for _, c := range r.Baselines {
		add(fmt.Sprintf("baseline, %d per round trip", c.Pipeline), c.SagaPrice, Estimate{})
		for _, sagas := range batches {
			if our := r.ceiling(base.with(sagas, c.Pipeline)); our != nil {
				add(fmt.Sprintf("  ours, %d per call", sagas), our.SagaPrice, c.Ratios[strconv.Itoa(sagas)])
			}
		}
	}
	return p
}

var causes = []string{CauseNetwork, CauseDispatch, CauseArguments, CauseLua, CauseCommand, CauseRest}

// byCause returns the price of each of the causes.
func (b Breakdown) byCause() []Estimate {
	prices := make([]Estimate, len(causes))
	for _, p := range b.Parts {
		prices[slices.Index(causes, p.Cause)] = p.US
	}
	prices[slices.Index(causes, CauseCommand)] = b.CommandsUS
	return prices
}

// known returns the breakdowns with enough rounds for intervals. Without one, a difference
// of two cases may be noise.
func (r Result) known() []Breakdown {
	return slices.DeleteFunc(slices.Clone(r.Breakdowns), func(b Breakdown) bool { return !b.TotalUS.known() })
}

func (r Result) breakdownTable() document.Part {
	p := table("Breakdown by cause, µs per saga",
		"Measured by leaving parts out; one call per round trip. From and to are the 95% interval: a cause whose interval contains 0 was not shown to cost anything. Each is a median over rounds, so a line need not add up. Rest is what the differences do not explain: for example, the first command on a key loads it into the CPU's cache.",
		"total", CauseNetwork, CauseDispatch, CauseArguments, CauseLua, "commands", CauseRest, "costliest line")
	known := r.known()
	for _, b := range known {
		var rows [3][]string // the price, and the ends of its interval
		for _, us := range append([]Estimate{b.TotalUS}, b.byCause()...) {
			for i, cell := range us.cells() {
				rows[i] = append(rows[i], cell)
			}
		}
		addRow(p, fmt.Sprintf("%s, %d per call", b.Case, b.Sagas), append(rows[0], b.Costliest)...)
		addRow(p, "  from", append(rows[1], "")...)
		addRow(p, "  to", append(rows[2], "")...)
	}
	if len(known) > 0 { // bars of different batches differ too much in length for one chart
		chart := r.breakdownChart(detailedBatches[0])
		p.Chart, p.More = &chart, []document.Chart{r.breakdownChart(detailedBatches[1])}
	}
	return p
}

// breakdownChart has a bar for each script with a layer for each cause.
func (r Result) breakdownChart(sagas int) document.Chart {
	c := document.Chart{
		Summary: fmt.Sprintf("µs of Redis per saga by cause, %s per call. A cause whose interval contains 0 has no bar.", format.Plural(sagas, "saga")),
		X:       document.Axis{Label: "µs per saga"},
	}
	for _, cause := range causes {
		c.Series = append(c.Series, document.Series{Name: cause})
	}
	for _, b := range r.known() {
		if b.Sagas != sagas {
			continue
		}
		c.Bars = append(c.Bars, b.Case)
		for i, us := range b.byCause() {
			point := document.Point{} // no length, unless it was shown to cost something
			if us.Low > 0 {
				point.Y = us.Median
			}
			c.Series[i].Points = append(c.Series[i].Points, point)
		}
	}
	return c
}

func (r Result) commandTable() document.Part {
	p := table("Commands in the scripts, per saga, 16 sagas per call",
		"Price: what the script costs less without the command. Alone: the command by the server's own clock, without passing its arguments and reply.",
		"price µs", "from", "to", "alone µs", "from", "to", "calls", "line")
	for _, b := range r.known() {
		for _, part := range b.Parts {
			if b.Sagas == 16 && part.Cause == CauseCommand {
				addRow(p, b.Case+" "+part.Command, slices.Concat(part.US.cells(), part.OwnUS.cells(), []string{format.Number(part.Calls), part.Line})...)
			}
		}
	}
	return p
}

func (r Result) sizeTable(sagas int) document.Part {
	p := table(fmt.Sprintf("µs per saga by its size and by the due index, %d per call, %d calls per round trip", sagas, base.Pipeline), "")
	shapes := sizeShapes(sagas, r.Method.DueIndexes)
	for _, s := range shapes {
		name := format.Plural(s.Steps, "step")
		switch {
		case s.Payload > 0:
			name = strconv.Itoa(s.Payload) + " B a step"
		case s.DueIndex > 0:
			name = format.Number(float64(s.DueIndex)) + " due"
		}
		p.Table.Columns = append(p.Table.Columns, name)
	}
	r.addScripts(p, shapes)
	return p
}

func (r Result) comparisonTable() document.Part {
	p := table("The other directory's scripts compared with ours, CPU µs per call",
		fmt.Sprintf("The interval encloses the true median of the ratio with %.0f%% confidence. From %d rounds on, a difference is named if the interval excludes 1.",
			100*strict, 2*minRoundsStrict),
		"ours", "other", "other/ours", "from", "to", "the other is")
	for _, c := range r.Comparisons {
		addRow(p, fmt.Sprintf("%s, %d per call", c.Case, c.Sagas), format.Number(c.OursUS.Median), format.Number(c.OtherUS.Median),
			format.Ratio(c.Ratio.Median), format.Ratio(c.Ratio.Low), format.Ratio(c.Ratio.High), c.Verdict)
	}
	return p
}

func find[T any](all []T, is func(T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return &all[i]
	}
	return nil
}

func (r Result) baseline(pipeline int) *Baseline {
	return find(r.Baselines, func(b Baseline) bool { return b.Pipeline == pipeline })
}

// price finds what a case without a variant costs; nil if it was not measured.
func (r Result) price(name string, s Shape) *Price {
	return find(r.Prices, func(p Price) bool { return p.Key == Key{Case: name, Shape: s} })
}

func (r Result) ceiling(s Shape) *Ceiling {
	return find(r.Ceilings, func(c Ceiling) bool { return c.Steps == s.Steps && c.Sagas == s.Sagas && c.Pipeline == s.Pipeline })
}
