package result

import (
	"math"
	"time"
)

// Sample is a second or so of a run: what was done in it, and what it took. What
// is null was not measured.
type Sample struct {
	AtS            float64  `json:"at_s"` // its end, since the beginning of the measured part
	SagasPerS      *float64 `json:"sagas_per_s"`
	P50MS          *float64 `json:"p50_ms"` // null, too, with too few samples: see LatencyOf
	P99MS          *float64 `json:"p99_ms"`
	LoadCores      *float64 `json:"load_cores"` // CPU, in cores kept busy
	AppCores       *float64 `json:"app_cores"`
	StoreCores     *float64 `json:"store_cores"`
	AppMemoryBytes *int64   `json:"app_memory_bytes"` // resident, at its end
	Batch          *float64 `json:"batch"`            // changes per call of the store
}

// TimelineOf puts together what was done, by the intervals of the load, and what
// it took, by moments of the same clock: each interval gets the moment whose end
// is nearest to its own, if it is less than half an interval away. Intervals at the
// end that are too short to tell a rate are left out. Without intervals the
// moments stay as they are.
func TimelineOf(intervals []Interval, took []Sample) []Sample {
	if len(intervals) == 0 {
		return took
	}
	var line []Sample
	for _, i := range intervals {
		if i.Length < WholeInterval {
			continue
		}
		end := i.Start.Add(i.Length).Sub(intervals[0].Start)
		m := nearest(took, end.Seconds(), i.Length.Seconds()/2)
		m.AtS = math.Round(1000*end.Seconds()) / 1000
		rate := math.Round(1000*i.PerS()) / 1000
		m.SagasPerS = &rate
		m.P50MS = inMS(i.P50, i.Acknowledged >= SamplesFor(50))
		m.P99MS = inMS(i.P99, i.Acknowledged >= SamplesFor(99))
		line = append(line, m)
	}
	return line
}

func nearest(moments []Sample, atS, within float64) (found Sample) {
	for _, m := range moments {
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

// wholeInterval is the shortest interval that tells a rate: the last one of a run may be
// a fraction of a second.
const WholeInterval = 900 * time.Millisecond
