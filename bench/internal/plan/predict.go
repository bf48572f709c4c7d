package plan

import (
	"fmt"

	"sagabench/bench/internal/result"
)

// Predict is what the measured machines would be seen to use at a rate, in this order:
// CPU of the load, of the app and of the store in cores, and fsyncs per second.
// Measuring that rate checks a plan. The error wraps ErrNoPlan.
func Predict(perS float64, results []result.Result) ([]Line, error) {
	if !(perS > 0) {
		return nil, fmt.Errorf("%w: it takes a rate above 0", ErrNoPlan)
	}
	e, err := gather(results)
	if err != nil {
		return nil, err
	}
	var lines []Line
	for _, x := range []struct {
		what, unit, name, per string
		factor                float64
		of                    func(result.Step) *float64
	}{
		{"load CPU", "cores", "load CPU per saga", " µs", 1e-6, loadCPU},
		{"app CPU", "cores", "app CPU per saga", " µs", 1e-6, appCPU},
		{"store CPU", "cores", "store CPU per saga", " µs", 1e-6, storeCPU},
		{"store fsyncs", "/s", "fsyncs per saga", "", 1, fsyncs},
	} {
		f := e.at(perS, x.name, x.per, x.of)
		l := Line{What: x.what, Unit: x.unit, Basis: f.basis, Extrapolated: e.beyond(perS)}
		l.Value, l.Low, l.High = f.times(perS * x.factor)
		lines = append(lines, l)
	}
	return lines, nil
}
