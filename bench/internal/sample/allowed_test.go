package sample

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/cgroup"
)

func TestThrottledShare_IsThatOfTheTime(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) allowed { return allowed{throttled: cgroup.Throttled{"group": d}} }
	require.InDelta(t, 0.6, *at(7*time.Second).throttledShare(at(4*time.Second), 5*time.Second), 1e-9)
	require.InDelta(t, 1, *at(6*time.Second).throttledShare(at(0), 5*time.Second), 1e-9, "the last period began before")
	require.Zero(t, *at(4*time.Second).throttledShare(at(4*time.Second), 5*time.Second))
	require.Nil(t, at(4*time.Second).throttledShare(allowed{}, 5*time.Second), "unknown before")
	require.Nil(t, at(4*time.Second).throttledShare(at(0), 0))
}
