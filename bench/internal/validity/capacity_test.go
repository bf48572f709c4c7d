package validity

import (
	"slices"
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
		RatePerS: perS,
		MeetsSLO: &kept,
		Validity: result.Validity{Valid: true},
	}
}

func closedStep(inFlight int, perS float64) result.Step {
	return result.Step{Measurement: result.Measurement{Load: result.Load{InFlight: inFlight, AchievedPerS: perS}}}
}

// lateStep is what is said of a step whose load generator was so late that its latency may
// be nothing else.
func lateStep(t *testing.T) result.Validity {
	t.Helper()
	m := sweepStep(1100, 1, false)
	m.Load.LatenessMS, m.LatencyMS.P99 = &result.Latency{P99: resulttest.Ptr(30.0)}, resulttest.Ptr(40.0)
	v := JudgeStep(m, Evidence{SLO: p99Of(20)}, result.Run{})
	require.False(t, v.Valid)
	return v
}

func TestJudgeCapacity(t *testing.T) {
	t.Parallel()
	good := func() result.Capacity {
		return result.Capacity{
			Search: result.Search{
				Held: &result.Held{RatePerS: 1000},
				Next: &result.Next{RatePerS: 1100, Why: "2.00% of the requests took longer than 20 ms or failed, in 9 of 60 seconds; 2 attempts, 60.0 s in all"},
			},
			Steps:   []result.Step{sweepStep(500, 1, true), sweepStep(1000, 1, true), sweepStep(1100, 1.1, false)},
			Scaling: []result.Step{closedStep(8, 1200), closedStep(16, 1500)},
		}
	}
	base := result.Validity{Valid: true, Warnings: []string{"shared host"}}
	require.Equal(t, base, JudgeCapacity(base, good()))
	require.Equal(t, base, JudgeCapacity(base, result.Capacity{}), "nothing was measured, which another warning says")

	late := lateStep(t)
	for name, c := range map[string]struct {
		spoil func(*result.Capacity)
		valid bool
		want  string // the finding
	}{
		"cannot tell": {
			func(c *result.Capacity) {
				c.Held, c.CannotTell = nil, "the same closed loop carried 1,000/s to 1,300/s"
			}, false,
			"cannot tell here: the same closed loop carried 1,000/s to 1,300/s",
		},
		"its time limit ended the search": {
			func(c *result.Capacity) { c.LimitS, c.Next = resulttest.Ptr(720.0), nil }, true,
			"time limit: a search was ended after 720 s; at least 1,000/s was held",
		},
		"one of three searches cannot tell": {
			func(c *result.Capacity) { c.Searches = []result.Search{c.Search, {CannotTell: "uneven"}, c.Search} }, true,
			"1 of 3 searches cannot tell: uneven",
		},
		"nothing held, as others used the machine": {
			func(c *result.Capacity) {
				c.Held, c.Steps[2].Hold = nil, true
				c.Steps[2].Validity.Warnings = []string{"others: 1.10 of 2"}
			}, true, "at 1,100/s: others: 1.10 of 2",
		},
		"nothing held": {func(c *result.Capacity) { c.Held = nil }, true, ""},
		"no upper bound": {
			func(c *result.Capacity) { c.Next = nil }, true,
			"no upper bound: no higher rate was tried for a whole hold that was not held, too",
		},
		"late generator at the next rate": {
			func(c *result.Capacity) { c.Next.Why = late.Because[0] + "; 2 attempts, 120 s in all" }, false,
			"at 1,100/s: " + late.Because[0] + "; 2 attempts, 120 s in all; the capacity may be higher",
		},
		"late generator at another rate": {
			func(c *result.Capacity) {
				c.Steps = append(c.Steps, sweepStep(1150, 1, false))
				c.Steps[3].Validity, c.Steps[3].MeetsSLO, c.Steps[3].Why = late, nil, late.Because[0]
			}, true, "",
		},
		"half of the closed loops": {func(c *result.Capacity) { c.Scaling[1].Load.AchievedPerS = 2000 }, true, ""},
		"far below the closed loops": {
			func(c *result.Capacity) {
				c.Scaling[1].Load.AchievedPerS = 2010
				c.Steps = append(c.Steps, sweepStep(1050, 1, true), sweepStep(1400, 1, true))
				c.Steps[4].Validity, c.Steps[4].MeetsSLO = late, nil
			}, true,
			"far below the closed loops: 1,000/s were held, and with 16 in flight 2,010/s were carried; 1 of 2 measurements at higher rates broke the service level, " +
				"at 1,100/s: 2.00% of the requests took longer than 20 ms or failed, in 9 of 60 seconds; 2 attempts, 60.0 s in all",
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
		"falling": {
			func(c *result.Capacity) { *c.Steps[0].LatencyMS.P50 = 1.5 }, true,
			"latency falls as load rises: p50 is 1.50 ms at 500/s and 1.00 ms at 1,000/s (power saving, or sleeping threads)",
		},
		"falling from a rate that violated the service level": {
			func(c *result.Capacity) { *c.Steps[0].LatencyMS.P50, *c.Steps[0].MeetsSLO = 1.5, false }, true, "",
		},
		"falling from a measurement that is not valid": {
			func(c *result.Capacity) { *c.Steps[0].LatencyMS.P50, c.Steps[0].Validity = 1.5, late }, true, "",
		},
		"falling from an overload": {
			func(c *result.Capacity) { *c.Steps[0].LatencyMS.P50, c.Steps[0].Load.AchievedPerS = 1.5, 400 }, true, "",
		},
		"falling in one of two measurements": {
			func(c *result.Capacity) {
				*c.Steps[0].LatencyMS.P50 = 1.5
				c.Steps = append(c.Steps, sweepStep(510, 1.1, true))
			}, true, "",
		},
		"falling in both": {
			func(c *result.Capacity) {
				*c.Steps[0].LatencyMS.P50 = 1.5
				c.Steps = append(c.Steps, sweepStep(510, 1.4, true))
			}, true,
			"latency falls as load rises: p50 is 1.40 ms at 500/s and 1.00 ms at 1,000/s (power saving, or sleeping threads)",
		},
		"uneven in an overload": {
			func(c *result.Capacity) {
				c.Steps[1].CostPerSaga.LoadCPUUS, c.Steps[2].CostPerSaga.LoadCPUUS = resulttest.Ptr(50.0), resulttest.Ptr(90.0)
				c.Steps[2].Load.AchievedPerS = 900
			}, true, "",
		},
		"hardly used": {
			func(c *result.Capacity) {
				c.Validation, c.Predicted = &c.Steps[0], []result.Predicted{{What: "load CPU", Unit: "cores", Expected: 0.02, Measured: 0.04}, {What: "store fsyncs", Unit: "/s", Expected: 1, Measured: 1.75}}
			}, true, "",
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
			require.Equal(t, base, got, name)
		case c.valid:
			require.Equal(t, []string{"shared host", c.want}, slices.Concat(got.Warnings, got.Notes), name)
		default:
			require.Equal(t, []string{c.want}, got.Because, name)
		}
	}
}

func TestJudgeSweep_SlowFsyncs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		durability string
		most       *float64
		want       bool
	}{
		"a stall":                  {"D3", resulttest.Ptr(297.0), true},
		"short enough":             {"D3", resulttest.Ptr(20.0), false},
		"not timed":                {"D3", nil, false},
		"no saga waits for fsyncs": {"D2", resulttest.Ptr(297.0), false},
	} {
		s := result.Summary{}
		s.Run.Store.Durability = c.durability
		s.Environment.StoreDisk = &result.StoreDisk{FsyncP50MS: resulttest.Ptr(0.2), FsyncMaxMS: c.most}
		warnings := JudgeSweep(s, Evidence{SLO: p99Of(20)}).Warnings
		require.Equal(t, c.want, slices.Contains(warnings,
			"slow fsyncs: before the load, one on the store's disk took 297 ms, half of them at most 0.200 ms; every saga that waits for such a one takes longer than 20 ms"), name)
	}
}
