package machine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

func TestBackoff_DoublesUpToTheCap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		b     machine.Backoff
		least []time.Duration // of retry 1, 2, …; the last of all further ones
	}{
		{machine.Backoff{First: time.Second, Max: 10 * time.Second}, []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9}},
		{machine.Backoff{First: 2 * time.Second, Max: 8 * time.Second}, []time.Duration{2e9, 4e9, 8e9}},
		{machine.Backoff{First: time.Minute, Max: time.Second}, []time.Duration{60e9}}, // as the saga asks for
		{machine.Backoff{First: time.Second, Max: time.Second}, []time.Duration{1e9}},
		{machine.Backoff{First: saga.MaxRetryInterval, Max: time.Minute}, []time.Duration{saga.MaxRetryInterval}},
	} {
		for _, tries := range []int{1, 2, 3, 4, 5, 6, 10, 100, saga.MaxRetryLimit, math.MaxInt} {
			least := tt.least[min(tries, len(tt.least))-1]
			shortest, longest := 2*least, time.Duration(0)
			for i := range 200 {
				pause := tt.b.Pause(fmt.Sprint("g", i), store.Action(3), tries)
				shortest, longest = min(shortest, pause), max(longest, pause)
			}
			require.GreaterOrEqual(t, shortest, least, "%+v, retry %d: an interval is a lower bound", tt.b, tries)
			require.LessOrEqual(t, longest, least*3/2, "%+v, retry %d", tt.b, tries)
			// Of 200 somewhere in the range the outermost are near its ends.
			require.Less(t, shortest, least*21/20, "%+v, retry %d", tt.b, tries)
			require.Greater(t, longest, least*29/20, "%+v, retry %d", tt.b, tries)
		}
	}
}

// Whatever differs among sagas that were held up together spreads them evenly:
// their gids, or, of one saga, its branches, and each retry anew.
func TestBackoff_SpreadsEvenly(t *testing.T) {
	t.Parallel()
	b := machine.Backoff{First: time.Second, Max: time.Second}
	const n = 2000
	for name, pause := range map[string]func(i int) time.Duration{
		"random gids":     func(int) time.Duration { return b.Pause(saga.NewGID(), 0, 1) },
		"counted gids":    func(i int) time.Duration { return b.Pause(fmt.Sprintf("order-%06d", i), 0, 1) },
		"branches":        func(i int) time.Duration { return b.Pause("g", store.Branch(i), 1) },
		"retries":         func(i int) time.Duration { return b.Pause("g", 0, 1+i) },
		"steps and tries": func(i int) time.Duration { return b.Pause("g", store.Action(i%50), 1+i/50) },
	} {
		var tenths [10]int
		sum := time.Duration(0)
		for i := range n {
			d := pause(i)
			require.GreaterOrEqual(t, d, time.Second)
			require.LessOrEqual(t, d, 3*time.Second/2)
			sum += d
			tenths[min(int((d-time.Second)/(time.Second/20)), 9)]++
		}
		require.InDelta(t, 1.25, (sum / n).Seconds(), 0.02, name)
		for i, in := range tenths {
			require.InDelta(t, n/10, in, n/10*0.4, "%s, tenth %d", name, i)
		}
	}
}

func TestBackoff_SameArguments_SamePause(t *testing.T) {
	t.Parallel()
	b := machine.Backoff{First: time.Second, Max: time.Minute}
	for branch := range store.Branch(10) {
		for tries := 1; tries < 10; tries++ {
			require.Equal(t, b.Pause("g", branch, tries), b.Pause("g", branch, tries))
		}
	}
	// Of another process, or of tomorrow's, too.
	require.Equal(t, 4048285491*time.Nanosecond, b.Pause("g", store.Action(1), 3))
}

// A pause is never too short for a store to tell it from none.
func TestBackoff_TinyInterval_IsNoLessThanAMillisecond(t *testing.T) {
	t.Parallel()
	for _, first := range []time.Duration{1, time.Microsecond, time.Millisecond} {
		pause := machine.Backoff{First: first}.Pause("g", 0, 1)
		require.GreaterOrEqual(t, pause, time.Millisecond)
		require.LessOrEqual(t, pause, 3*time.Millisecond/2)
	}
}
