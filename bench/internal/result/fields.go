package result

import (
	"math"
	"reflect"
	"slices"
	"strconv"

	"sagabench/internal/format"
)

// Field is one figure of a struct of figures: Cost, Resources or Latency. The tags of
// the struct are the one table of them. A new figure is a new struct field; reports,
// comparisons and merged results then have it.
type Field[T any] struct {
	Key        string  // in summary.json
	Label      string  // in reports; figures without one are not shown
	Unit       string  // µs, bytes, /s; "share" of 1; empty: a number of things
	Percentile float64 // of a latency; 0: it is none
	Group      string  // of a cost: figures that reports show on one line
	Short      string  // of a cost: its name within the group
	Merge      Merge

	index int
}

// Merge is how the figures of several load hosts become one.
type Merge string

// The ways to merge figures. Without one, the merged figure is unknown.
const (
	MergeLoad  Merge = "load"  // each host has its own
	MergeApp   Merge = "app"   // each host has its own, or all share one: by their targets
	MergeStore Merge = "store" // all hosts share it
	MergeSum   Merge = "sum"
	MergeMax   Merge = "max"
)

// Of returns the figure, nil if it is unknown.
func (f Field[T]) Of(figures T) *float64 {
	return reflect.ValueOf(figures).Field(f.index).Interface().(*float64)
}

// Set replaces the figure.
func (f Field[T]) Set(figures *T, x *float64) {
	reflect.ValueOf(figures).Elem().Field(f.index).Set(reflect.ValueOf(x))
}

// Text writes the figure with its unit.
func (f Field[T]) Text(figures T) string {
	x := f.Of(figures)
	switch {
	case x == nil:
		return f.Missing(figures)
	case f.Unit == "share":
		return format.Percent(*x)
	case f.Unit == "" || f.Unit[0] == '/':
		return format.Number(*x) + f.Unit
	}
	return format.Number(*x) + " " + f.Unit
}

// Missing is shown in place of a figure that is nil: it is unknown, or below what can be
// measured.
func (f Field[T]) Missing(figures T) string {
	if c, ok := any(figures).(Cost); ok && slices.Contains(c.NotMeasurable, f.Key) {
		return "(not measurable)" // a word would align its column as words
	}
	return format.Unknown
}

// Heading writes the label with its unit, for a column of plain numbers.
func (f Field[T]) Heading() string {
	if f.Unit == "" || f.Unit == "share" {
		return f.Label
	}
	return f.Label + ", " + f.Unit
}

// fieldsOf reads the tags of the fields of T that are figures.
func fieldsOf[T any]() (fields []Field[T]) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		sf := of.Field(i)
		if sf.Type != reflect.TypeFor[*float64]() {
			continue
		}
		f := Field[T]{
			Key: sf.Tag.Get("json"), Label: sf.Tag.Get("label"), Unit: sf.Tag.Get("unit"),
			Group: sf.Tag.Get("group"), Short: sf.Tag.Get("short"), Merge: Merge(sf.Tag.Get("merge")), index: i,
		}
		if percentile := sf.Tag.Get("percentile"); percentile != "" {
			var err error
			if f.Percentile, err = strconv.ParseFloat(percentile, 64); err != nil {
				panic(err) // a tag of this package
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// Average returns the mean of each figure. A figure that one of them lacks is unknown.
func Average[T any](fields []Field[T], all []T) (mean T) {
	for _, f := range fields {
		sum := 0.0
		known := len(all) > 0
		for _, figures := range all {
			x := f.Of(figures)
			if x == nil {
				known = false
				break
			}
			sum += *x
		}
		if known {
			sum /= float64(len(all))
			f.Set(&mean, &sum)
		}
	}
	return mean
}

// Round rounds a figure to three decimals: what lies below is noise.
func Round(x float64) float64 { return math.Round(x*1000) / 1000 }
