package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// drawn are the metrics that have pictures: a bar or a point each, or stacked.
var drawn = map[string]struct{ each, stacked []string }{
	"capacity":  {each: []string{"held_per_s"}},
	"saga":      {each: []string{"achieved_per_s", "p99_ms"}, stacked: []string{"store_cpu_us", "app_cpu_us"}},
	"operation": {each: []string{"ops_per_s", "p99_ms"}, stacked: []string{"server_cpu_us", "client_cpu_us"}},
	"crash":     {each: []string{"window_ms"}},
}

const (
	mostBars   = 8  // of one chart with all variants
	mostPanels = 12 // of one picture
)

// Matrix draws a table of variants: its main metrics, latency over the rate, and CPU time.
// It leaves out what was not measured.
func Matrix(t result.MatrixTable) (parts []document.Part) {
	add := func(p *document.Part) {
		if p != nil {
			parts = append(parts, *p)
		}
	}
	pictures := drawn[t.Measure]
	for _, key := range pictures.each {
		if key == "achieved_per_s" && t.Set["rate"] != "" {
			continue // all have the same
		}
		if i := metricIndex(t, key); i >= 0 {
			add(metricPicture(t, t.Metrics[i]))
		}
	}
	add(curvesPicture(t))
	add(stackedPicture(t, pictures.stacked))
	return parts
}

func metricIndex(t result.MatrixTable, key string) int {
	return slices.IndexFunc(t.Metrics, func(m result.MatrixMetric) bool { return m.Key == key })
}

// panel is what one chart shows of a table.
type panel struct {
	title    string // what its variants have in common; empty: it has all
	names    []string
	variants []result.MatrixVariant
}

// panels returns the table as a whole, or if it is too large for one chart, the variants
// that differ along one axis together.
func panels(t result.MatrixTable, along int) []panel {
	if len(t.Variants) <= mostBars {
		whole := panel{variants: t.Variants}
		for _, v := range t.Variants {
			whole.names = append(whole.names, barName(t, v, func(int) bool { return true }))
		}
		return []panel{whole}
	}
	return panelsAlong(t, along)
}

func panelsAlong(t result.MatrixTable, along int) (all []panel) {
	for _, v := range t.Variants {
		title := valueNames(t, v, func(axis int) bool { return axis != along })
		i := slices.IndexFunc(all, func(p panel) bool { return p.title == title })
		if i < 0 {
			i, all = len(all), append(all, panel{title: title})
		}
		all[i].names = append(all[i].names, barName(t, v, func(axis int) bool { return axis == along }))
		all[i].variants = append(all[i].variants, v)
	}
	return all
}

// valueNames joins the names of a variant's values along some axes. Axes with one value are
// left out.
func valueNames(t result.MatrixTable, v result.MatrixVariant, has func(axis int) bool) string {
	var names []string
	for i, name := range v.Names {
		if !has(i) || len(t.Axes[i].Values) < 2 {
			continue
		}
		names = append(names, ValueName(t.Axes[i].Name, name))
	}
	return strings.Join(names, ", ")
}

// ValueName names a value of an axis. A number has the name of its axis.
func ValueName(axis, value string) string {
	if _, ok := number(value); ok {
		return axis + " " + value
	}
	return value
}

// barName is the name of a variant beside its bar. What a crash loses depends on the
// durability class, so that is there, too.
func barName(t result.MatrixTable, v result.MatrixVariant, has func(axis int) bool) string {
	name := valueNames(t, v, has)
	if class := v.Store.Durability; t.Measure == "crash" && class != "" && !strings.Contains(name, class) {
		name += " (" + class + ")"
	}
	return name
}

// comparedAxis returns the index of the axis along which variants are compared, else of the
// one with the most values.
func comparedAxis(t result.MatrixTable) (along int) {
	for i, a := range t.Axes {
		if a.Name == t.Compare {
			return i
		}
		if len(a.Values) > len(t.Axes[along].Values) {
			along = i
		}
	}
	return along
}

// metricPicture has a curve for each compared value if an axis has numbers, else bars.
func metricPicture(t result.MatrixTable, m result.MatrixMetric) *document.Part {
	along := comparedAxis(t)
	label := m.Heading()
	var charts []*document.Chart
	if over := numberAxis(t, along); over >= 0 {
		charts = metricCurves(t, m.Key, label, over, along)
	} else {
		for _, p := range panels(t, along) {
			var figures []*result.Spread
			for _, v := range p.variants {
				figures = append(figures, figureOf(v, m.Key))
			}
			c := Figures(label, p.names, figures)
			charts = append(charts, titled(c, p.title))
		}
	}
	title := t.Title
	if !strings.EqualFold(title, m.Label) {
		title += ": " + m.Label
	}
	return picturePart(title, charts)
}

func figureOf(v result.MatrixVariant, key string) *result.Spread {
	f, ok := v.Figures[key]
	if !ok {
		return nil
	}
	return &result.Spread{Low: f.Low, Median: f.Median, High: f.High}
}

func titled(c *document.Chart, title string) *document.Chart {
	if c != nil && title != "" {
		c.Summary = title + ": " + c.Summary
	}
	return c
}

// picturePart returns nil without a chart. The tables of the matrix have the numbers.
func picturePart(title string, charts []*document.Chart) *document.Part {
	charts = slices.DeleteFunc(charts, func(c *document.Chart) bool { return c == nil })
	p := Part(title, charts[:min(len(charts), mostPanels)]...)
	if p == nil {
		return nil
	}
	if n := len(charts); n > mostPanels {
		p.Text = append(p.Text, fmt.Sprintf("The first %d of %d; the tables have all.", mostPanels, n))
	}
	p.Table = &document.Table{}
	return p
}

// numberAxis returns the index of an axis of three or more numbers, such as clients or
// rates; -1: there is none.
func numberAxis(t result.MatrixTable, except int) int {
	return slices.IndexFunc(t.Axes, func(a result.MatrixAxis) bool {
		return a.Name != t.Axes[except].Name && len(a.Values) > 2 && !slices.ContainsFunc(a.Values, func(v string) bool { _, ok := number(v); return !ok })
	})
}

// number reads a number, or a rate per second.
func number(text string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	return x, err == nil
}

// metricCurves has a chart for each combination of the axes but two: over is the horizontal
// axis, and along has a curve for each value.
func metricCurves(t result.MatrixTable, key, label string, over, along int) (charts []*document.Chart) {
	byTitle := map[string]*document.Chart{}
	for _, v := range t.Variants {
		f, ok := v.Figures[key]
		if !ok {
			continue
		}
		title := valueNames(t, v, func(axis int) bool { return axis != over && axis != along })
		c := byTitle[title]
		if c == nil {
			c = &document.Chart{X: document.Axis{Label: t.Axes[over].Name}, Y: document.Axis{Label: label}}
			c.Summary = fmt.Sprintf("%s over %s, by %s.", label, t.Axes[over].Name, t.Axes[along].Name)
			byTitle[title], charts = c, append(charts, titled(c, title))
		}
		i := slices.IndexFunc(c.Series, func(s document.Series) bool { return s.Name == v.Names[along] })
		if i < 0 {
			i, c.Series = len(c.Series), append(c.Series, document.Series{Name: v.Names[along]})
		}
		x, _ := number(v.Names[over])
		p := document.Point{X: x, Y: f.Median}
		if f.Low < f.High {
			p.Low, p.High = f.Low, f.High
		}
		c.Series[i].Points = append(c.Series[i].Points, p)
	}
	for _, c := range charts {
		low, high := c.Series[0].Points[0].X, 0.0
		for _, s := range c.Series {
			slices.SortFunc(s.Points, func(a, b document.Point) int { return cmp.Compare(a.X, b.X) })
			low, high = min(low, s.Points[0].X), max(high, s.Points[len(s.Points)-1].X)
		}
		if low > 0 && high >= 10*low {
			c.X.Scale = document.Log
		}
	}
	return charts
}

// stackedPicture has a stacked bar of CPU time for each variant.
func stackedPicture(t result.MatrixTable, keys []string) *document.Part {
	var charts []*document.Chart
	for _, p := range panels(t, comparedAxis(t)) {
		c := &document.Chart{Bars: p.names}
		totals := make([]float64, len(p.variants))
		known := make([]bool, len(p.variants))
		for _, key := range keys {
			at := metricIndex(t, key)
			if at < 0 {
				continue
			}
			m := t.Metrics[at]
			c.X.Label = "CPU, " + m.Unit
			layer := document.Series{Name: m.Label}
			for i, v := range p.variants {
				f, ok := v.Figures[key]
				layer.Points = append(layer.Points, document.Point{Y: f.Median, Missing: !ok})
				totals[i] += f.Median
				known[i] = known[i] || ok
			}
			c.Series = append(c.Series, layer)
		}
		if len(c.Series) == 0 {
			return nil
		}
		var texts []string
		for i, name := range p.names {
			if known[i] {
				texts = append(texts, name+" "+format.Number(totals[i]))
			}
		}
		c.Summary = "CPU by process."
		if len(texts) <= mostInWords {
			c.Summary = "CPU in µs; sum of the medians: " + strings.Join(texts, ", ") + "."
		}
		charts = append(charts, titled(c, p.title))
	}
	return picturePart(t.Title+": CPU", charts)
}

// curvesPicture is latency over the rate, of a table of searches.
func curvesPicture(t result.MatrixTable) *document.Part {
	var limits []float64
	if slo, err := result.ParseSLO(t.Set["slo"]); err == nil {
		limits = p99Limits(slo)
	}
	var charts []*document.Chart
	for _, p := range panels(t, comparedAxis(t)) {
		var curves [][]result.RatePoint
		for _, v := range p.variants {
			curves = append(curves, v.Curve)
		}
		charts = append(charts, titled(latencyOverRate(p.names, curves, limits), p.title))
	}
	return picturePart(t.Title+": latency over the rate", charts)
}
