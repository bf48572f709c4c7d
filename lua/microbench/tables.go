package microbench

import (
	"fmt"
	"strconv"
	"strings"

	"sagabench/internal/document"
)

func (r Result) priceTable() table {
	t := table{
		Title: "CPU of Redis, µs per saga",
		Note:  "Sagas a call / calls sent at once. A saga of 2 steps is saved, updated and completed once." + r.spreadNote(),
	}
	shapes := []Shape{}
	for _, sagas := range batches {
		s := base.of(sagas)
		for _, s.Pipeline = range pipelines {
			shapes = append(shapes, s)
			t.Columns = append(t.Columns, short(sagas)+"/"+short(s.Pipeline))
		}
	}
	for _, name := range scripts() {
		var cells []string
		for _, s := range shapes {
			cells = append(cells, r.perSaga(name, s))
		}
		t.add(name, cells...)
	}
	var sums, rates []string
	for _, s := range shapes {
		sum, rate := unknown, unknown
		if c := r.ceiling(s); c != nil {
			sum, rate = number(c.CPUUS), number(c.PerS)
		}
		sums, rates = append(sums, sum), append(rates, rate)
	}
	t.add("saga of 2 steps", sums...)
	t.add("sagas/s of a core", rates...)
	return t
}

// spreadNote says how well the typical figure is known.
func (r Result) spreadNote() string {
	if spread := r.spread(); spread != nil {
		return fmt.Sprintf(" Half of the figures are known to within %.0f%%, with %.0f%% confidence.", 100*spread.Median, 100*usual)
	}
	return ""
}

func (r Result) ceiling(s Shape) *Ceiling {
	for i, c := range r.Ceilings {
		if c.Steps == s.Steps && c.Sagas == s.Sagas && c.Pipeline == s.Pipeline {
			return &r.Ceilings[i]
		}
	}
	return nil
}

func (r Result) classicTable() table {
	t := table{
		Title:   "Then and now: one saga of 2 steps",
		Note:    "The classic pattern: JSON records under three keys and an index, four scripts sent as text.",
		Columns: []string{"CPU µs", "times ours", "sagas/s of a core", "calls", "bytes in", "bytes out"},
	}
	for _, c := range r.Classic {
		t.add("classic, "+atOnce(c.Pipeline), number(c.CPUUS), unknown, number(c.PerS), number(c.Calls), number(c.BytesIn), number(c.BytesOut))
		for _, sagas := range batches {
			s := base.of(sagas)
			s.Pipeline = c.Pipeline
			if our := r.ceiling(s); our != nil {
				t.add("  ours, "+short(sagas)+" a call", number(our.CPUUS), number(c.Ratios[short(sagas)]), number(our.PerS),
					number(our.Calls), number(our.BytesIn), number(our.BytesOut))
			}
		}
	}
	return t
}

func atOnce(pipeline float64) string {
	if pipeline == 1 {
		return "one at a time"
	}
	return short(pipeline) + " at once"
}

func (r Result) splitTable() table {
	t := table{
		Title:   "Where the microseconds go, per saga",
		Note:    "By leaving parts out, one call to a round trip. Rest: what the differences do not explain, as that the first command on a key brings it into the cache.",
		Columns: []string{"total", CauseNetwork, CauseDispatch, CauseArguments, CauseLua, "commands", CauseRest, "dearest line"},
	}
	for _, s := range r.Splits {
		sums := s.causes()
		cells := []string{number(s.TotalUS)}
		for _, cause := range causes {
			cells = append(cells, number(sums[cause]))
		}
		t.add(s.Probe+", "+short(s.Sagas)+" a call", append(cells, s.Dearest)...)
	}
	t.Charts = r.splitCharts()
	return t
}

// splitCharts have a bar for each script, split by cause: one for one saga a call and
// one for many, whose bars differ too much in length.
func (r Result) splitCharts() (charts []document.Chart) {
	for _, sagas := range splitBatches {
		c := document.Chart{X: document.Axis{Label: "µs per saga"}}
		for _, cause := range causes {
			c.Series = append(c.Series, document.Series{Name: cause})
		}
		var said []string
		for _, s := range r.Splits {
			if s.Sagas != sagas {
				continue
			}
			c.Bars = append(c.Bars, s.Probe)
			sums := s.causes()
			for i, cause := range causes {
				// Noise may make a cause less than nothing: it has no length.
				c.Series[i].Points = append(c.Series[i].Points, document.Point{Y: max(0, sums[cause])})
			}
			said = append(said, s.Probe+" "+number(s.TotalUS))
		}
		if len(c.Bars) > 0 {
			c.Summary = fmt.Sprintf("µs of Redis per saga by cause, %s a call: %s.", plural(int(sagas), "saga"), strings.Join(said, ", "))
			charts = append(charts, c)
		}
	}
	return charts
}

var causes = []string{CauseNetwork, CauseDispatch, CauseArguments, CauseLua, CauseCommand, CauseRest}

// causes adds up the parts of each cause.
func (s Split) causes() map[string]float64 {
	sums := map[string]float64{}
	for _, p := range s.Parts {
		sums[p.Cause] += p.US
	}
	return sums
}

func (r Result) commandTable() table {
	t := table{
		Title:   "Commands inside, 16 sagas a call, per saga",
		Note:    "Price: what the script costs less without it. Itself: by the server's own clock, without the handing over.",
		Columns: []string{"price µs", "itself µs", "calls", "line"},
	}
	for _, s := range r.Splits {
		if s.Sagas != 16 {
			continue
		}
		for _, p := range s.Parts {
			if p.Cause == CauseCommand {
				t.add(s.Probe+" "+p.Command, number(p.US), optional(p.OwnUS), number(p.Calls), p.Place)
			}
		}
	}
	return t
}

func (r Result) sizeTable(sagas float64) table {
	t := table{Title: fmt.Sprintf("µs per saga by its size and the due index, %s a call, %s at once", short(sagas), short(base.Pipeline))}
	var shapes []Shape
	add := func(name string, s Shape) {
		shapes = append(shapes, s)
		t.Columns = append(t.Columns, name)
	}
	for _, n := range steps {
		s := base.of(sagas)
		s.Steps = n
		add(plural(n, "step"), s)
	}
	for _, n := range payloads[1:] {
		s := base.of(sagas)
		s.Payload = n
		add(strconv.Itoa(n)+" B a step", s)
	}
	for _, n := range r.Method.Due {
		s := base.of(sagas)
		s.DueIndex = n
		add(number(float64(n))+" due", s)
	}
	for _, name := range scripts() {
		var cells []string
		for _, s := range shapes {
			cells = append(cells, r.perSaga(name, s))
		}
		t.add(name, cells...)
	}
	return t
}

// callTable has everything that takes one saga or none.
func (r Result) callTable() table {
	t := table{
		Title: "One call",
		Note:  fmt.Sprintf("P: calls sent at once by each of %d connections. Rates are what this client got out of the server.", connections),
	}
	for _, what := range []string{"µs", "/s"} {
		for _, p := range pipelines {
			t.Columns = append(t.Columns, "P"+short(p)+" "+what)
		}
	}
	t.Columns = append(t.Columns, "in B", "out B")
	var done []Key
next:
	for _, p := range r.Prices {
		key := p.Key
		key.Pipeline = 0
		for _, other := range done {
			if other == key {
				continue next
			}
		}
		done = append(done, key)
		if p.Variant != whole || p.Sagas != 1 || p.Payload != 0 || p.Steps != 0 && p.Steps != base.Steps || p.DueIndex != 0 && p.Steps != 0 {
			continue
		}
		us, rate := []string{}, []string{}
		for _, key.Pipeline = range pipelines {
			at := r.price(p.Probe, key.Shape)
			if at == nil {
				us, rate = append(us, unknown), append(rate, unknown)
				continue
			}
			us, rate = append(us, number(at.CPUUS.Median)), append(rate, number(at.CallsPerS.Median))
		}
		name := p.Probe
		if p.DueIndex > 0 {
			name += ", " + number(float64(p.DueIndex)) + " members"
		}
		t.add(name, append(append(us, rate...), number(p.BytesIn), number(p.BytesOut))...)
	}
	return t
}

func (r Result) recordTable() table {
	t := table{
		Title:   "Memory, bytes per saga",
		Columns: []string{"unfinished", "finished", "allocations kept", "made"},
	}
	for _, c := range r.Records {
		name := plural(c.Steps, "step")
		if c.Payload > 0 {
			name += fmt.Sprintf(", %d B a step", c.Payload)
		}
		if c.Pattern != patternOurs {
			name += ", classic"
		}
		t.add(name, number(c.UnfinishedBytes), number(c.FinishedBytes), optional(c.Kept), optional(c.Made))
	}
	return t
}
