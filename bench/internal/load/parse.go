package load

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseProfile reads a rate, as 500/s, steps, as 100/s,200/s,400/s, or a ramp, as
// 100/s..2000/s. Empty is a closed loop.
func ParseProfile(text string) (Profile, error) {
	if text == "" {
		return Profile{}, nil
	}
	profile, err := parseRates(text)
	if err == nil {
		err = profile.Validate()
	}
	if err != nil {
		return Profile{}, fmt.Errorf("rate: %q: %w; want requests per time, as 500/s, in steps 100/s,200/s or rising 100/s..2000/s, or none for a closed loop", text, err)
	}
	return profile, nil
}

func parseRates(text string) (Profile, error) {
	if from, to, ramp := strings.Cut(text, ".."); ramp {
		first, err := ParseRate(from)
		last, err2 := ParseRate(to)
		return Ramp(first, last), cmp.Or(err, err2)
	}
	var steps []float64
	for step := range strings.SplitSeq(text, ",") {
		rate, err := ParseRate(step)
		if err != nil {
			return Profile{}, err
		}
		steps = append(steps, rate)
	}
	return Steps(steps...), nil
}

// ParseRate reads 500, 500/s, 30000/m or 100/250ms, as vegeta does, into
// requests per second.
func ParseRate(text string) (float64, error) {
	number, unit, found := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	per := time.Second
	if err == nil && found {
		if unit != "" && (unit[0] < '0' || unit[0] > '9') {
			unit = "1" + unit
		}
		per, err = time.ParseDuration(unit)
	}
	if err != nil || !(n >= 0) || per <= 0 {
		return 0, fmt.Errorf("%q is no rate", text)
	}
	return n / per.Seconds(), nil
}
