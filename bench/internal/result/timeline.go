package result

import (
	"math"
	"slices"
	"time"
)

// Sample is about a second of a run. Figures that were not measured are nil.
type Sample struct {
	AtS            float64  `json:"at_s"` // its end, seconds since the start of the measured part
	SagasPerS      *float64 `json:"sagas_per_s"`
	ErrorsPerS     *float64 `json:"errors_per_s"` // requests that failed; null: none of the run did, or unknown
	P50MS          *float64 `json:"p50_ms"`       // null also with too few samples
	P99MS          *float64 `json:"p99_ms"`
	LoadCores      *float64 `json:"load_cores"` // CPU, in busy cores
	AppCores       *float64 `json:"app_cores"`
	StoreCores     *float64 `json:"store_cores"`
	AppMemoryBytes *int64   `json:"app_memory_bytes"` // resident, at the end
	Batch          *float64 `json:"batch"`            // changes per call to the store
}

// Second is the requests that were due in one second of a measurement.
type Second struct {
	Due       int64    // sent or dropped
	Errors    int64    // failed
	Dropped   int64    // never sent
	LatencyUS []uint32 // of the others, in µs from the due time
}

// Over counts the requests that took longer than a limit, failed or were never sent.
func (s Second) Over(ms float64) (n int64) {
	n = s.Errors + s.Dropped
	for _, us := range s.LatencyUS {
		if float64(us) > 1000*ms {
			n++
		}
	}
	return n
}

// OverLimit ends a measurement once more than Most of its requests are over a limit.
type OverLimit struct {
	MS   float64
	Most int64
}

// TimelineOf joins the intervals of the load with samples of resources on the same clock.
// Each interval gets the sample whose end is nearest to its own, if it is less than half an
// interval away. It leaves out intervals that are too short for a rate. Without intervals it
// returns the samples.
func TimelineOf(intervals []Interval, samples []Sample) []Sample {
	if len(intervals) == 0 {
		return samples
	}
	var line []Sample
	failed := slices.ContainsFunc(intervals, func(i Interval) bool { return i.Errors > 0 })
	for _, i := range intervals {
		if i.Length < WholeInterval {
			continue
		}
		end := i.Start.Add(i.Length).Sub(intervals[0].Start)
		m := nearest(samples, end.Seconds(), i.Length.Seconds()/2)
		m.AtS = math.Round(1000*end.Seconds()) / 1000
		rate := math.Round(1000*i.PerS()) / 1000
		m.SagasPerS = &rate
		if failed {
			errors := Round(float64(i.Errors) / i.Length.Seconds())
			m.ErrorsPerS = &errors
		}
		m.P50MS = inMS(i.P50, i.Acknowledged >= SamplesFor(50))
		m.P99MS = inMS(i.P99, i.Acknowledged >= SamplesFor(99))
		line = append(line, m)
	}
	return line
}

func nearest(samples []Sample, atS, within float64) (found Sample) {
	for _, m := range samples {
		if away := math.Abs(m.AtS - atS); away < within {
			found, within = m, away
		}
	}
	return found
}

func inMS(d time.Duration, enough bool) *float64 {
	if !enough {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

// WholeInterval is the shortest interval that has a rate. The last one of a run may be a
// fraction of a second.
const WholeInterval = 900 * time.Millisecond
