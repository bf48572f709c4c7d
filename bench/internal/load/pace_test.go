package load

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

// Once the requests are on time again, the system has nothing to do with what is late
// later.
func TestPace_LateAfterItWasFullAndOnTime_IsTheGeneratorsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Uint64
		s := &schedule{profile: Constant(100), arrival: ArrivalConstant, planned: time.Minute}
		p := &openPacer{ctx: t.Context(), began: time.Now(), arrivals: s.arrivals(), limit: 10, ended: &ended}
		hit := uint64(0)
		next := func() {
			t.Helper()
			_, stop := p.Pace(0, hit)
			require.False(t, stop)
			hit++
		}
		for range 10 { // nobody answers
			next()
		}
		time.Sleep(10*time.Millisecond + 2*result.LateAfter)
		next()
		require.EqualValues(t, 1, p.lateFull, "the limit delayed it")
		ended.Store(hit)
		for p.full {
			next() // catches up, and is on time in the end
		}
		caughtUp := p.lateFull

		time.Sleep(10*time.Millisecond + 2*result.LateAfter)
		next()
		require.Equal(t, caughtUp, p.lateFull, "the generator was late by itself")
	})
}
