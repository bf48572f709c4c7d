package webui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moment is a time as it is shown, in UTC since servers are anywhere.
type moment struct {
	ISO, Text, Distance string // all empty for the zero time
}

// at formats t, with its distance from now.
func at(t, now time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	m := moment{ISO: t.UTC().Format(time.RFC3339Nano), Text: t.UTC().Format("2006-01-02 15:04:05 UTC")}
	switch d := now.Sub(t); {
	case d >= time.Second:
		m.Distance = rough(d) + " ago"
	case d <= -time.Second:
		m.Distance = "in " + rough(-d)
	default:
		m.Distance = "now"
	}
	return m
}

// ahead is at for a time in the future, and the zero moment for one that has passed.
func ahead(t, now time.Time) moment {
	if !t.After(now) {
		return moment{}
	}
	return at(t, now)
}

// rough formats a duration in its largest unit.
func rough(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return strconv.Itoa(int(d.Hours()/24)) + " days"
	case d >= 2*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	case d >= 2*time.Minute:
		return strconv.Itoa(int(d.Minutes())) + " min"
	default:
		return strconv.Itoa(int(d.Seconds())) + " s"
	}
}

// exact formats a duration with about three digits.
func exact(d time.Duration) string {
	switch {
	case d >= time.Minute:
		text := d.Round(time.Second).String()
		if short, ok := strings.CutSuffix(text, "m0s"); ok { // 1h0m0s is 1h, and 1h30m0s is 1h30m
			text = short + "m"
		}
		if short, ok := strings.CutSuffix(text, "h0m"); ok {
			text = short + "h"
		}
		return text
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(time.Microsecond).String()
	}
}

// size formats a number of bytes.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	default:
		return plural(bytes, "byte")
	}
}

// plural formats a count of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
