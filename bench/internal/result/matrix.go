package result

import "slices"

// MatrixSummary is the result of a matrix: tables of variants, run interleaved. Its store,
// scenario and environment are those of the first run.
type MatrixSummary struct {
	Envelope
	Matrix Matrix `json:"matrix"`
}

// Matrix is what the runs of all tables show.
type Matrix struct {
	Title     string            `json:"title"`
	File      string            `json:"file"`      // path of the variant file, or name of an embedded one
	Hash      string            `json:"hash"`      // SHA-256 of the file
	Seed      uint64            `json:"seed"`      // of the order
	Quick     bool              `json:"quick"`     // whether it is the short form of the file
	Overrides map[string]string `json:"overrides"` // values given beside the file, by key
	Tables    []MatrixTable     `json:"tables"`
}

// MatrixTable is one table.
type MatrixTable struct {
	Name     string            `json:"name"`
	Title    string            `json:"title"`
	Measure  string            `json:"measure"` // saga, capacity, operation or crash
	Repeats  int               `json:"repeats"` // planned blocks
	Axes     []MatrixAxis      `json:"axes"`
	Compare  string            `json:"compare"` // axis along which variants are ranked; empty: none are
	Set      map[string]string `json:"set"`     // values of all variants, by key
	Metrics  []MatrixMetric    `json:"metrics"` // that were measured, the most important first
	Variants []MatrixVariant   `json:"variants"`
	Groups   []MatrixGroup     `json:"groups"` // what is ranked; empty without compare
	// Overall compares over all groups together that are ranked, by the geometric mean of
	// their ratios. Its Where has the names of these groups. It is null if there are fewer
	// than two.
	Overall *MatrixGroup `json:"overall"`
}

// Metric returns the metric with the key; ok is false if no run has it.
func (t MatrixTable) Metric(key string) (m MatrixMetric, ok bool) {
	if i := slices.IndexFunc(t.Metrics, func(m MatrixMetric) bool { return m.Key == key }); i >= 0 {
		return t.Metrics[i], true
	}
	return m, false
}

// MatrixAxis is something that the variants of a table differ in.
type MatrixAxis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// MatrixMetric describes a figure of a table's runs.
type MatrixMetric struct {
	Key    string `json:"key"`
	Label  string `json:"label"`
	Unit   string `json:"unit"`   // as of a Field; "yes": 1 is yes and 0 is no
	Better string `json:"better"` // higher or lower; empty: neither
	Detail bool   `json:"detail"` // whether only the whole report shows it
}

// Heading is the label with the unit, for plain numbers.
func (m MatrixMetric) Heading() string {
	switch m.Unit {
	case "", "yes", "bytes", "share":
		return m.Label
	}
	return m.Label + ", " + m.Unit
}

// Better values of a metric.
const (
	Higher = "higher"
	Lower  = "lower"
)

// MatrixVariant is one combination of the values of a table's axes.
type MatrixVariant struct {
	Names    []string                `json:"names"`     // of its values, in the order of the axes
	Runs     []string                `json:"runs"`      // directories of its runs, below that of the result, in the order of the blocks
	Failed   string                  `json:"failed"`    // why a run could not be made; empty: all could
	Invalid  []string                `json:"invalid"`   // why runs are not valid; such a variant is not ranked
	Store    Store                   `json:"store"`     // of its first run
	CPULimit string                  `json:"cpu_limit"` // how the CPU of the store's server was limited; empty: it was not
	Figures  map[string]MatrixFigure `json:"figures"`   // by metric; absent: not measured
	Curve    []RatePoint             `json:"curve"`     // latency over the rate, of searches; by rising rate
}

// MatrixFigure is a metric of a variant over its valid runs. Low and High are the lowest and
// the highest of them.
type MatrixFigure struct {
	Median float64   `json:"median"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Runs   []float64 `json:"runs"`
}

// MatrixGroup ranks the variants that differ only along the compared axis.
type MatrixGroup struct {
	Where     []string        `json:"where"`      // names of the values of the other axes
	NotRanked string          `json:"not_ranked"` // why no variant is called better; empty: one may be
	Verdicts  []MatrixVerdict `json:"verdicts"`
}

// MatrixVerdict says which variants of a group are best by one metric.
type MatrixVerdict struct {
	Metric string `json:"metric"`
	// Best names the value of the compared axis that is better than each other one. It
	// names several if these do not differ, while others are worse. It is empty if no
	// difference is seen.
	Best  []string     `json:"best"`
	Text  string       `json:"text"` // the verdict in words
	Pairs []MatrixPair `json:"pairs"`
}

// MatrixPair compares two values of the compared axis, by the ratio of B to A.
type MatrixPair struct {
	A          string   `json:"a"`
	B          string   `json:"b"`
	Ratio      float64  `json:"ratio"` // geometric mean over the blocks; 0: it was 0 in a run
	Low        *float64 `json:"low"`   // null: the interval says nothing
	High       *float64 `json:"high"`
	Confidence float64  `json:"confidence"` // share of such intervals that contain the true ratio
}

// MatrixRun is one run of a variant. Its Envelope has the store, the validity, the check and
// the environment as far as the run has them.
type MatrixRun struct {
	Envelope
	Names    []string           `json:"names"`
	Block    int                `json:"block"`     // from 1
	CPULimit string             `json:"cpu_limit"` // how the CPU of the store's server was limited; empty: it was not
	Metrics  map[string]float64 `json:"metrics"`   // absent: not measured
	Curve    []RatePoint        `json:"curve"`     // latency over the rate, of a search; by rising rate
	// LatencyFrom says from when latencies count, if that is not before the request is written.
	// Such latencies are not judged against others.
	LatencyFrom string `json:"latency_from"`
}
