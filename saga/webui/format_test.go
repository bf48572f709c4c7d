package webui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAt_SaysHowLongAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for d, want := range map[time.Duration]string{
		0: "now", 999 * time.Millisecond: "now", time.Second: "1 s ago", 119 * time.Second: "119 s ago", 2 * time.Minute: "2 min ago",
		119 * time.Minute: "119 min ago", 2 * time.Hour: "2 h ago", 47 * time.Hour: "47 h ago", 48 * time.Hour: "2 days ago",
		-time.Second: "in 1 s", -time.Hour: "in 60 min",
	} {
		require.Equal(t, want, at(now.Add(-d), now).Distance)
	}
	require.Equal(t, "2026-01-02 02:04:05 UTC", at(now, now).Text)
	require.Equal(t, moment{}, at(time.Time{}, now))
	require.Equal(t, moment{}, ahead(now, now))
	require.Equal(t, "in 1 s", ahead(now.Add(time.Second), now).Distance)
}

func TestExact_LeavesOutWhatSaysNothing(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234: "1µs", 1234567: "1.2ms", 1234567890: "1.23s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 61 * time.Second: "1m1s", 20 * time.Hour: "20h",
	} {
		require.Equal(t, want, exact(d))
	}
}

func TestSize_TakesTheUnitThatFits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 3 << 19: "1.5 MiB"} {
		require.Equal(t, want, size(n))
	}
}
