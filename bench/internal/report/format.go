package report

import (
	"math"
	"strconv"
	"strings"
)

const unknown = "–"

// count writes a whole number with thousands separators.
func count(n int64) string { return group(strconv.FormatInt(n, 10)) }

// number writes x with three significant digits, or as a whole number with
// thousands separators from 1,000 on.
func number(x float64) string {
	switch magnitude := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return unknown
	case magnitude == 0:
		return "0"
	case magnitude < 0.0005:
		return strconv.FormatFloat(x, 'g', 2, 64)
	case magnitude < 0.9995:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case magnitude < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case magnitude < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return group(strconv.FormatFloat(x, 'f', 0, 64))
	}
}

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

func group(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// plural writes "1 saga" and "2 sagas".
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}
