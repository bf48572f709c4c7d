// Package format writes numbers for people: with as many digits as carry meaning, with
// thousands separators, and with their unit. It makes text of others printable.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Unknown stands for a value that was not measured.
const Unknown = "–"

// Number writes x with three significant digits, or as a whole number with thousands
// separators from 1,000 on. It writes Unknown for infinities and NaN.
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

// Short writes a number that somebody chose, such as a setting or a tick of an axis:
// up to six significant digits without trailing zeros, with thousands separators.
func Short(x float64) string {
	const digits = 6
	if magnitude := math.Abs(x); magnitude >= 1e9 || magnitude < 1e-4 && x != 0 {
		return strconv.FormatFloat(x, 'g', digits, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	whole, fraction, found := strings.Cut(strconv.FormatFloat(rounded, 'f', -1, 64), ".")
	if found {
		fraction = "." + fraction
	}
	return group(whole) + fraction
}

// Ratio writes x with three decimals, so that ratios near 1 can be compared. From 1,000
// on it has three digits.
func Ratio(x float64) string {
	if x >= 999.9995 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// Percent writes a share of 1 in percent: 0.081 as "8.10%".
func Percent(share float64) string { return Number(100*share) + "%" }

// SignedPercent writes a change that is given in percent, with its sign: "+8.10%".
func SignedPercent(percent float64) string {
	if percent > 0 {
		return "+" + Number(percent) + "%"
	}
	return Number(percent) + "%"
}

// Count writes a whole number with thousands separators.
func Count[N int | int64](n N) string { return group(strconv.FormatInt(int64(n), 10)) }

// Plural writes a count and its noun: "1 saga", "2,000 sagas".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Bytes writes a size with its unit, B to TiB.
func Bytes[N int | int64 | float64](bytes N) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x := float64(bytes)
	for x >= 1024 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	return fmt.Sprintf("%s %s", Number(x), units[0])
}

// Duration writes d without the units that are 0: 1h30m, not 1h30m0s.
func Duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Optional writes *x, or Unknown if x is nil.
func Optional[T any](x *T, write func(T) string) string {
	if x == nil {
		return Unknown
	}
	return write(*x)
}

// Printable replaces characters by spaces with which text of others, as the version of a server or
// a file of another host, could control a terminal, begin a line, or reverse what follows.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

// group puts a comma between groups of three digits.
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
