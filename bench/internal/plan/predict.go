package plan

import (
	"fmt"
	"slices"

	"sagabench/bench/internal/result"
)

// Predict is what the measured machines would be seen to use at a rate: CPU of the
// load, of the app and of the store in cores, fsyncs per second and bytes written per
// second. Measuring that rate checks a plan, so what a search measured to check its own
// prediction is left out. The error wraps ErrNoPlan.
func Predict(perS float64, results []result.Result) ([]Line, error) {
	if !(perS > 0) {
		return nil, fmt.Errorf("%w: it takes a rate above 0", ErrNoPlan)
	}
	results = slices.Clone(results)
	for i, r := range results {
		if r.Capacity != nil {
			c := *r.Capacity
			c.Capacity.Validation = nil
			results[i].Capacity = &c
		}
	}
	e, err := gather(results)
	if err != nil {
		return nil, err
	}
	return []Line{
		e.at(perS, "load CPU per saga", " µs", loadCPU).line("load CPU", "cores", perS/perCore),
		e.at(perS, "app CPU per saga", " µs", appCPU).line("app CPU", "cores", perS/perCore),
		e.at(perS, "store CPU per saga", " µs", storeCPU).line("store CPU", "cores", perS/perCore),
		e.at(perS, "fsyncs per saga", "", fsyncs).line("store fsyncs", "/s", perS),
		e.at(perS, "written to disk per saga", " bytes", written).line("written to disk", "bytes/s", perS),
	}, nil
}
