package format

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNumber_HasThreeDigits(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 0.00012: "0.00012", 0.0412: "0.041", 0.9994: "0.999", 0.9996: "1.00", 9.83: "9.83",
		9.996: "10.0", 41.27: "41.3", 99.96: "100", 999.6: "1,000", 11240.3: "11,240", 1234567: "1,234,567", -1234: "-1,234",
		math.Inf(1): Unknown,
	} {
		require.Equal(t, want, Number(x))
	}
}

func TestShort_DropsTrailingZeros(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 0.1 + 0.2: "0.3", 99.95: "99.95", 2500: "2,500", -0.05: "-0.05", 1e-6: "1e-06", 1e9: "1e+09", 1234.5: "1,234.5",
	} {
		require.Equal(t, want, Short(x))
	}
}

func TestPrintable_LeavesNothingThatControlsATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"7.0.15 µs – ok":  "7.0.15 µs – ok",
		"a\x1b[31mb\a\n":  "a [31mb  ",
		"a\u009bb\u202ec": "a b c",
		"a\u2028b":        "a b",
		"a\x9bb":          "a\ufffdb", // not UTF-8
	} {
		require.Equal(t, want, Printable(text))
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	require.Equal(t, "8.10%", Percent(0.081))
	require.Equal(t, []string{"+8.10%", "0%", "-8.10%"}, []string{SignedPercent(8.1), SignedPercent(0), SignedPercent(-8.1)})
	require.Equal(t, []string{"1.001", "999.000", "5.88e+85"}, []string{Ratio(1.0009), Ratio(999), Ratio(5.8792e85)})
	require.Equal(t, []string{"0 sagas", "1 saga", "2,000 sagas"}, []string{Plural(0, "saga"), Plural(int64(1), "saga"), Plural(2000, "saga")})
	require.Equal(t, []string{"1,000 B", "1.00 KiB", "1.50 GiB", "2,048 TiB"}, []string{Bytes(1000), Bytes(1024), Bytes(int64(3 << 29)), Bytes(int64(1 << 51))})
	require.Equal(t, []string{"0.500 B", "8.00 B", "1.76 KiB"}, []string{Bytes(0.5), Bytes(7.9976), Bytes(1801.4)}, "bytes per operation have fractions")
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s",
	} {
		require.Equal(t, want, Duration(d))
	}
	n := int64(1200)
	require.Equal(t, "1,200", Optional(&n, Count[int64]))
	require.Equal(t, Unknown, Optional(nil, Number))
}
