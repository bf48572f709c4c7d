package load

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
		require.False(t, p.delayed.take(9))
		next()
		require.True(t, p.delayed.take(10), "it is on time, and waits for a place")
		time.Sleep(100 * time.Millisecond)
		ended.Store(5)
		next()
		require.True(t, p.delayed.take(11), "the limit made it late")
		require.False(t, p.delayed.take(11), "it is forgotten")
		ended.Store(hit)
		for p.full {
			next() // catches up, and is on time in the end
		}
		require.False(t, p.delayed.take(hit-1))

		time.Sleep(100 * time.Millisecond)
		next()
		require.False(t, p.delayed.take(hit-1), "the generator was late by itself")
	})
}
