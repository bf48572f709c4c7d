package saga

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestNewGID_SortsByTime_AndIsNobodyElses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[string]bool)
		before := ""
		for _, pause := range []time.Duration{0, time.Millisecond, 31 * time.Millisecond, time.Second, time.Hour, 24 * time.Hour, 200 * 365 * 24 * time.Hour} {
			time.Sleep(pause)
			var last string
			for range 100 {
				gid := NewGID()
				require.NoError(t, store.CheckGID(gid))
				require.Len(t, gid, 22)
				require.False(t, seen[gid])
				require.Greater(t, gid, before)
				seen[gid] = true
				last = max(last, gid)
			}
			time.Sleep(time.Millisecond)
			before = last
		}
	})
}
