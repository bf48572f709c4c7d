package report

import "sagabench/internal/document"

const unknown = document.Unknown

func count(n int64) string { return document.Count(n) }

func number(x float64) string { return document.Number(x) }

// optional writes x, or a dash for what is not known.
func optional(x *float64) string {
	if x == nil {
		return unknown
	}
	return number(*x)
}

// optionalCount writes n, or a dash for what is not known.
func optionalCount(n *int64) string {
	if n == nil {
		return unknown
	}
	return count(*n)
}

// percent writes a share of 1.
func percent(share float64) string { return number(100*share) + "%" }

// size writes bytes in the unit that suits them.
func size(bytes int64) string {
	const step = 1024
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, unit := float64(bytes), 0
	for x >= step && unit < len(units)-1 {
		x, unit = x/step, unit+1
	}
	return number(x) + " " + units[unit]
}

// plural writes "1 saga" and "2 sagas".
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}
