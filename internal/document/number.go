package document

import (
	"math"
	"strconv"
	"strings"
)

// Unknown stands for what was not measured.
const Unknown = "–"

// Number writes x with three significant digits, or as a whole number with thousands
// separators from 1,000 on. What is no number is Unknown.
func Number(x float64) string {
	switch magnitude := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return Unknown
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

// short writes a number that is meant to be round, at a tick.
func short(x float64) string {
	const digits = 6
	if magnitude := math.Abs(x); magnitude >= 1e9 || magnitude < 1e-4 && x != 0 {
		return strconv.FormatFloat(x, 'g', digits, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(rounded, 'f', -1, 64), ".")
	if fraction != "" {
		fraction = "." + fraction
	}
	return group(whole) + fraction
}

// Count writes a whole number with thousands separators.
func Count(n int64) string { return group(strconv.FormatInt(n, 10)) }

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
