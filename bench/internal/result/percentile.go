package result

// At is the latency at one of the percentiles that are kept, as 99 or 99.9, in
// milliseconds; nil: too few samples, or it is not kept.
func (l Latency) At(percentile float64) *float64 {
	switch percentile {
	case 50:
		return l.P50
	case 90:
		return l.P90
	case 95:
		return l.P95
	case 99:
		return l.P99
	case 99.9:
		return l.P999
	case 99.99:
		return l.P9999
	}
	return nil
}

// HasPercentile reports whether a percentile is kept.
func HasPercentile(percentile float64) bool {
	var all float64
	return Latency{&all, &all, &all, &all, &all, &all, &all, &all}.At(percentile) != nil
}
