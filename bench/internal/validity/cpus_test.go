package validity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

func TestJudge_SaysWhichCPUsAreShared(t *testing.T) {
	t.Parallel()
	for want, cpus := range map[string]CPUs{
		"share a machine; quote":                                             {},
		"machine; quote CPU per saga":                                        {Load: []int{0, 1}},
		"machine and its CPUs (0-1); quote":                                  {Load: []int{0, 1}, App: []int{0, 1}, Store: []int{0, 1}},
		"machine and CPUs (load and app 2,4-5, app and store 7); quote":      {Load: []int{2, 4, 5}, App: []int{0, 2, 3, 4, 5, 7}, Store: []int{7, 8}},
		"machine, each on CPUs of its own (load 0, app 1-3, store 5); quote": {Load: []int{0}, App: []int{1, 2, 3}, Store: []int{5}},
	} {
		var s result.Summary
		s.Run.SharedHost = true
		j := judgement{s: s, e: Evidence{CPUs: cpus}}
		j.surroundings()
		require.Len(t, j.Warnings, 1)
		require.Contains(t, j.Warnings[0], want)
	}
}

func TestJudge_ARateThatIsToChangeIsNoDrift(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	var e Evidence
	for i := range 9 {
		e.Intervals = append(e.Intervals, result.Interval{Start: began.Add(time.Duration(i) * time.Second), Length: time.Second, Acknowledged: int64(100 * (i + 1))})
	}
	for profile, drifts := range map[string]bool{"": true, "500/s": true, "1.5/s": true, "100/s,200/s": false, "100/s..900/s": false} {
		j := judgement{s: result.Summary{Measurement: result.Measurement{Load: result.Load{Profile: profile}}}, e: e}
		j.drift()
		require.Equal(t, drifts, len(j.Warnings) == 1, profile)
	}
}
