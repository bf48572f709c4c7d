package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// columnNames names results for people: by the directory that was chosen for them, or by
// what they differ in. Equal names are numbered.
func columnNames(results []result.Result) []string {
	names := describe(results)
	for i, r := range results {
		if chosen(r) {
			names[i] = filepath.Base(filepath.Clean(r.Dir))
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names) {
		return names
	}
	for i, r := range results {
		if chosen(r) {
			names[i] = r.Dir
		}
		names[i] = fmt.Sprintf("%d: %s", i+1, names[i])
	}
	return names
}

// chosen reports whether the result is in a directory that was not named after the run.
func chosen(r result.Result) bool {
	return r.Dir != "" && filepath.Base(filepath.Clean(r.Dir)) != r.Envelope().Run.ID
}

// describe returns the store of each result, its durability class if that differs, and of
// what else they differ in as much as tells them apart.
func describe(results []result.Result) []string {
	names := make([]string, len(results))
	tellApart := func(separator string, always bool, of func(result.Result, result.Run) string) {
		before := slices.Clone(names)
		for i, r := range results {
			text := of(r, r.Envelope().Run)
			for k, other := range results {
				if (always || before[k] == before[i]) && of(other, other.Envelope().Run) != text {
					names[i] = before[i] + separator + cmp.Or(text, format.Unknown)
					break
				}
			}
		}
	}
	for i, r := range results {
		names[i] = cmp.Or(r.Envelope().Run.Store.Driver, "unknown store")
	}
	tellApart(" ", false, func(_ result.Result, r result.Run) string { return r.Store.Version })
	tellApart(" ", true, func(_ result.Result, r result.Run) string { return r.Store.Durability })
	tellApart(", ", false, func(_ result.Result, r result.Run) string {
		if n := r.Store.Masters(); n > 0 {
			return format.Plural(int64(n), "master")
		}
		return "one server"
	})
	tellApart(", ", false, func(_ result.Result, r result.Run) string { return r.Scenario.String() })
	tellApart(", ", false, func(r result.Result, _ result.Run) string { return loadText(r) })
	tellApart(", ", false, func(_ result.Result, r result.Run) string { return format.Plural(int64(r.AppHosts), "app host") })
	return names
}

// loadText says what load a result is of.
func loadText(r result.Result) string {
	switch {
	case r.Capacity != nil:
		return "held at " + r.Capacity.Capacity.SLO.LatencyLimits()
	case r.Run.Load.OfferedPerS != nil:
		return format.Number(*r.Run.Load.OfferedPerS) + "/s offered"
	}
	return format.Count(int64(r.Run.Load.InFlight)) + " in flight"
}
