// Package document is a result in words, tables and charts, before it is laid out:
// as text for a terminal, as Markdown, or as one HTML page that needs nothing else,
// neither script nor network.
//
// What is shown is the same in all three. A chart is drawn on the page only; its
// numbers are in the table that every chart has, which text and Markdown show
// instead, the longer ones thinned out; or in the facts that stand beside it.
//
// What cannot be drawn is refused by all three: see [Document.Check].
package document

// Document is a result, what matters most first.
type Document struct {
	Title    string   // of the page; the run's id
	Verdict  string   // why the result must not be relied on; empty: it may be
	Headline string   // the answer, in one line
	Lead     []string // what to know with it, a sentence or two each
	Parts    []Part
	Command  string // to type for the same again; empty: there is none
}

// Part is a titled piece of a document. It holds one or more of the following, which are shown in
// this order.
type Part struct {
	Title string
	Text  []string // paragraphs
	Facts []Fact
	List  []string
	Chart *Chart
	More  []Chart // drawn beside Chart, of the same Table
	Table *Table  // nil: made of the points of the charts

	// Course: the rows of Table are a course, of which a terminal is shown some, as it
	// is of a table made of points.
	Course bool
}

// Fact is a named value. A fact without a name belongs to the one before it.
type Fact struct{ Name, Value string }

// Table has a name for each row and for each column.
type Table struct {
	Corner  string   // what the names are; may be empty
	Columns []string // without that of the names
	Rows    []Row
}

// Row is one line of a table.
type Row struct {
	Name  string
	Cells []string
}

// Chart is curves over a common axis, or stacked bars.
type Chart struct {
	Summary string // what there is to see, in a sentence or two, for who does not see it
	X, Y    Axis
	Series  []Series // curves, or, with Bars, the layers of each bar
	Bars    []string // names of the bars: bar i is made of the points i of the series; nil: curves
	Marks   []Mark
}

// Axis of a chart. That of the bars' names has a label only.
type Axis struct {
	Label string // with its unit
	Scale Scale
}

// Scale is how values are spread over an axis.
type Scale int

// The scales.
const (
	Linear Scale = iota // from 0
	Log                 // values are positive; ticks at 1, 2 and 5 times powers of ten
	Log2                // the same with ticks at powers of two
	Nines               // percentiles, 0 to less than 100, by their number of nines
)

// Series is one curve, or one layer of stacked bars.
type Series struct {
	Name   string // empty: there is only one
	Points []Point
	Dots   bool // measurements, which no line connects
}

// Point of a series. Low and High are the ends of its interval; both 0: it has none.
type Point struct{ X, Y, Low, High float64 }

// Mark is a line across the chart, at X or at Y.
type Mark struct {
	Label string
	X, Y  *float64 // one of them
}
