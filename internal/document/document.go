// Package document writes a result of text, tables and charts in three layouts: text
// for a terminal, Markdown, and one HTML page that loads nothing, neither scripts nor
// fonts.
//
// All three show the same content. Only the page draws charts. Text and Markdown show
// the facts beside a chart, or else its table, of which they leave out rows if it is
// long.
//
// [Document.Brief] is a document for one screen of a terminal.
//
// All three refuse a chart that cannot be drawn: see [Document.Check].
package document

// Document is a result, the most important first.
type Document struct {
	Title    string   // of the page; the run's id
	Verdict  string   // why the result is not valid; empty: it is valid
	Headline string   // the answer, in one line
	Lead     []string // its caveats, a sentence or two each
	Parts    []Part
	Command  string // reproduces the result; may be empty
	Again    string // command that shows the result again, given its directory; empty: none does
}

// Part is a section of a document. It holds one or more of the following, shown in this
// order.
type Part struct {
	Title string
	Text  []string // paragraphs
	Facts []Fact
	List  []string
	Chart *Chart
	More  []Chart // drawn beside Chart; if that has bars, with the same ones
	Table *Table  // the numbers of all charts; nil: made from their points; without rows: another part has them
	Thin  bool    // a long Table may be thinned out, as tables made from points are

	Detail bool // Brief leaves the part out
}

// Fact is a named value. A fact without a name continues the previous one.
type Fact struct{ Name, Value string }

// Table names its rows and columns.
type Table struct {
	Corner  string   // header of the column of row names; may be empty
	Columns []string // headers of the other columns
	Rows    []Row
}

// Row is one line of a table.
type Row struct {
	Name  string
	Cells []string
}

// Chart shows curves, or stacked bars.
type Chart struct {
	Summary string // describes the chart in a sentence or two, also for screen readers
	X, Y    Axis
	Series  []Series // curves; with Bars, the layers of each bar
	Bars    []string // names of the bars: bar i stacks the Y of point i of each series; nil: curves
	Marks   []Mark
}

// Axis describes one axis of a chart. Bars use X only.
type Axis struct {
	Label string // with its unit
	Scale Scale
}

// Scale maps values to positions on an axis.
type Scale int

// The scales.
const (
	Linear Scale = iota // starts at 0, or at the lowest value if that is negative
	Log                 // values are positive; ticks at 1, 2 and 5 times powers of ten
	Log2                // values are positive; ticks at powers of two
	Nines               // percentiles from 0 to below 100, by their number of nines
)

// Series is one curve, or one layer of stacked bars.
type Series struct {
	Name   string // may be empty if it is the only one
	Points []Point
	Dots   bool // draws points without a line
}

// Point is a value of a series. Low and High bound its interval; both are 0 without one. A
// layer of a bar has an interval only if it is the bar's only layer.
type Point struct {
	X, Y, Low, High float64

	Missing bool // of a bar: the value is not known, and Y is 0
}

// Mark is a line across the chart, at X or at Y.
type Mark struct {
	Label string
	X, Y  *float64 // one of them
}
