package result

import (
	"fmt"
	"strings"
)

// Validity says whether a result may be used. Each finding states its figures.
type Validity struct {
	Valid    bool     `json:"valid"`
	Because  []string `json:"because"`  // what makes the result invalid; reads on from "because"
	Warnings []string `json:"warnings"` // what limits the use of the result: "what: why"
	Notes    []string `json:"notes"`    // what is worth knowing: "what: why"
}

// Include adds the findings of a result that this one was made from, each after its name.
func (v *Validity) Include(name string, of Validity) {
	named := func(list, of []string) []string {
		for _, finding := range of {
			list = append(list, name+": "+finding)
		}
		return list
	}
	v.Valid = v.Valid && of.Valid
	v.Because, v.Warnings, v.Notes = named(v.Because, of.Because), named(v.Warnings, of.Warnings), named(v.Notes, of.Notes)
}

// Verdict returns the line above an invalid result, empty for a valid one.
func (v Validity) Verdict() string {
	switch {
	case v.Valid:
		return ""
	case len(v.Because) == 0:
		return "NOT VALID"
	}
	line := "NOT VALID because " + strings.ReplaceAll(v.Because[0], "\n", "; ")
	if more := len(v.Because) - 1; more > 0 {
		line += fmt.Sprintf(" (and %d more)", more)
	}
	return line
}
