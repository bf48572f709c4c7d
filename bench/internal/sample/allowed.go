package sample

import (
	"maps"
	"time"

	"github.com/prometheus/procfs"

	"sagabench/bench/internal/cgroup"
)

// allowed is the CPU that processes of this machine may use. What is nil is unknown.
type allowed struct {
	cores     *float64 // of its CPU affinity, or of its quota if that is less
	throttled cgroup.Throttled
}

// allowedOf is that of processes, which may run on these CPUs.
func allowedOf(cpus []int, pids ...int) (a allowed) {
	if len(cpus) == 0 {
		return a
	}
	quota, unlimited := 0.0, false
	throttled := cgroup.Throttled{}
	for _, pid := range pids {
		group, err := cgroup.Of(pid)
		if err != nil {
			return a
		}
		before := len(throttled)
		maps.Copy(throttled, group.Throttled)
		switch {
		case group.Quota == nil:
			unlimited = true
		case len(throttled) > before: // else it shares the quota of another
			quota += *group.Quota
		}
	}
	cores := float64(len(cpus))
	if !unlimited {
		cores = min(cores, quota)
	}
	return allowed{cores: &cores, throttled: throttled}
}

// throttledShare returns the share of the time that was in periods in which the process
// used up its CPU quota.
func (a allowed) throttledShare(before allowed, elapsed time.Duration) *float64 {
	throttled := a.throttled.Since(before.throttled)
	if throttled == nil || elapsed <= 0 {
		return nil
	}
	share := min(1, throttled.Seconds()/elapsed.Seconds()) // the last period may have begun before
	return &share
}

// cpuPressure returns the seconds since this machine was started in which something that
// could run waited for a CPU; nil if the kernel does not count them.
func cpuPressure() *float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	stats, err := proc.PSIStatsForResource("cpu")
	if err != nil || stats.Some == nil {
		return nil
	}
	seconds := float64(stats.Some.Total) / microseconds
	return &seconds
}
