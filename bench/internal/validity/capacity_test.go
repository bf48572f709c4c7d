package validity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
)

// sweepStep is an open-loop measurement with nothing to say against it.
func sweepStep(perS, p50 float64, kept bool) result.Step {
	return result.Step{
		Measurement: result.Measurement{
			Load:      result.Load{Mode: result.Open, OfferedPerS: &perS, AchievedPerS: perS, Requests: 10_000},
			LatencyMS: result.Latency{P50: &p50},
		},
		MeetsSLO: &kept,
		Validity: result.Validity{Valid: true},
	}
}

func closedStep(inFlight int, perS float64) result.Step {
	return result.Step{Measurement: result.Measurement{Load: result.Load{InFlight: inFlight, AchievedPerS: perS}}}
}

func TestJudgeCapacity(t *testing.T) {
	t.Parallel()
	good := func() result.Capacity {
		return result.Capacity{
			RatePerS: resulttest.Ptr(1000.0), LowPerS: resulttest.Ptr(950.0), HighPerS: resulttest.Ptr(1050.0),
			Steps:   []result.Step{sweepStep(500, 1, true), sweepStep(1000, 1, true), sweepStep(1100, 1.1, false)},
			Scaling: []result.Step{closedStep(8, 1200), closedStep(16, 1500)},
			Recheck: resulttest.Ptr(closedStep(16, 1450)),
		}
	}
	base := result.Validity{Valid: true, Warnings: []string{"shared host"}}
	require.Equal(t, base, JudgeCapacity(base, good()))
	require.Equal(t, base, JudgeCapacity(base, result.Capacity{}), "nothing was measured, which another warning says")

	late := result.Validity{Warnings: []string{"late load generator: 500 of 10,000"}}
	for name, c := range map[string]struct {
		spoil func(*result.Capacity)
		valid bool
		want  string // the first of the warnings that were not there
	}{
		"late generator above the rate": {
			func(c *result.Capacity) {
				c.Steps = append(c.Steps, c.Steps[0])
				c.Steps[2].Validity, c.Steps[2].Why = late, late.Warnings[0]
			}, true, "",
		},
		"late generator below the rate": {
			func(c *result.Capacity) {
				c.RatePerS, c.LowPerS, c.HighPerS = resulttest.Ptr(1080.0), resulttest.Ptr(1000.0), resulttest.Ptr(1150.0)
				c.Steps = append(c.Steps, c.Steps[0])
				c.Steps[2].Validity, c.Steps[2].Why = late, late.Warnings[0]
			}, false, "at 1,100/s: late load generator: 500 of 10,000; the capacity may be higher",
		},
		"late generator, repeated": {
			func(c *result.Capacity) {
				c.Steps = append(c.Steps, c.Steps[2])
				c.Steps[3].Validity, c.Steps[3].MeetsSLO = late, nil
			}, true, "",
		},
		"late generator, repeatedly": {
			func(c *result.Capacity) {
				c.Steps = append(c.Steps, c.Steps[1], c.Steps[2], c.Steps[2])
				for i := range c.Steps[3:] {
					c.Steps[3+i].Validity, c.Steps[3+i].Why, c.Steps[3+i].MeetsSLO = late, late.Warnings[0], nil
				}
			}, false, "busy machine: the load generator was late in 1 of the 3 measurements below the found rate; use another machine for it",
		},
		"late generator, once": {
			func(c *result.Capacity) {
				c.Steps = append(c.Steps, c.Steps[1], c.Steps[1], sweepStep(900, 1, false))
				c.Steps[5].Validity, c.Steps[5].Why = late, late.Warnings[0]
			}, true, "",
		},
		"even": {
			func(c *result.Capacity) {
				c.Steps[1].CostPerSaga.LoadCPUUS, c.Steps[2].CostPerSaga.LoadCPUUS = resulttest.Ptr(50.0), resulttest.Ptr(60.0)
			}, true, "",
		},
		"uneven": {
			func(c *result.Capacity) {
				c.Steps = append(c.Steps, c.Steps[1])
				for i, cost := range []float64{200, 50, 200, 66} { // two are far from the capacity
					c.Steps[i].CostPerSaga.LoadCPUUS = &cost
				}
			}, true,
			"uneven machine: near the capacity a saga cost the load generator 50.0 to 66.0 µs of CPU; another search may differ as much",
		},
		"no upper bound": {
			func(c *result.Capacity) { c.HighPerS = nil }, true,
			"no upper bound: the service level was met at the highest tried rate, 1,000/s",
		},
		"wide": {
			func(c *result.Capacity) { c.LowPerS = resulttest.Ptr(700.0) }, true,
			"repeats disagree: the same rates met and violated the service level; the capacity is between 700/s and 1,050/s",
		},
		"falling": {
			func(c *result.Capacity) { *c.Steps[0].LatencyMS.P50 = 1.5 }, true,
			"latency falls as load rises: p50 is 1.50 ms at 500/s and 1.00 ms at 1,000/s (power saving, or sleeping threads)",
		},
		"machine changed": {
			func(c *result.Capacity) { c.Recheck.Load.AchievedPerS = 1200 }, true,
			"not steady: 1,500/s with 16 in flight at the beginning, 1,200/s at the end: the machine or the store changed",
		},
		"as expected": {
			func(c *result.Capacity) {
				c.Validation, c.Predicted = &c.Steps[0], []result.Predicted{{What: "app CPU", Unit: "cores", Expected: 1, Measured: 1.14}, {What: "store fsyncs", Unit: "/s", Expected: 0, Measured: 0}}
			}, true, "",
		},
		"not as expected": {
			func(c *result.Capacity) {
				c.Validation, c.Predicted = &c.Steps[0], []result.Predicted{{What: "app CPU", Unit: "cores", Expected: 1, Measured: 1.16}}
			}, true, "plan: at 500/s the predicted app CPU is 1.00 cores, the measured 1.16",
		},
		"warning of a step": {
			func(c *result.Capacity) { c.Steps[1].Validity.Warnings = []string{"others: 1.10 of 2"} }, true, "at 1,000/s: others: 1.10 of 2",
		},
	} {
		capacity := good()
		c.spoil(&capacity)
		got := JudgeCapacity(base, capacity)
		require.Equal(t, c.valid, got.Valid, name)
		switch {
		case c.want == "":
			require.Equal(t, base.Warnings, got.Warnings, name)
		case c.valid:
			require.Equal(t, []string{"shared host", c.want}, got.Warnings, name)
		default:
			require.Equal(t, []string{c.want, "shared host"}, got.Warnings, name+": why it is not valid comes first")
		}
	}
}
