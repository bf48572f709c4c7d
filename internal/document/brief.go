package document

import (
	"fmt"
	"slices"
)

// briefItems is how many items of a list a brief document shows.
const briefItems = 5

// Brief returns the document for one screen of a terminal: without the parts that are
// details, without the command, and with the first items of its lists. Its last line says
// where the rest is. dir holds the files of the result; empty: there are none.
func (d Document) Brief(dir string) Document {
	d.Command = ""
	d.Parts = slices.DeleteFunc(slices.Clone(d.Parts), func(p Part) bool { return p.Detail })
	for i, p := range d.Parts {
		if more := len(p.List) - briefItems; more > 0 {
			d.Parts[i].List = append(slices.Clone(p.List[:briefItems]), fmt.Sprintf("and %d more", more))
		}
	}
	rest := "Details: --verbose"
	switch {
	case dir != "" && d.Again != "":
		rest = fmt.Sprintf("Details: %s --verbose %s, or report.html there", d.Again, dir)
	case dir != "":
		rest += ", or report.html in " + dir
	}
	d.Parts = append(d.Parts, Part{Title: rest})
	return d
}
