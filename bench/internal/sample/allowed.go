package sample

import (
	"time"

	"github.com/prometheus/procfs"

	"sagabench/bench/internal/cgroup"
)

// allowed is the CPU that a process of this machine may use. What is nil is unknown.
type allowed struct {
	cores     *float64 // of its CPU affinity, or of its quota if that is less
	throttled cgroup.Throttled
}

// allowedOf is that of a process, which may run on these CPUs.
func allowedOf(pid int, cpus []int) (a allowed) {
	group, err := cgroup.Of(pid)
	if err != nil || len(cpus) == 0 {
		return a
	}
	cores := float64(len(cpus))
	if group.Quota != nil {
		cores = min(cores, *group.Quota)
	}
	return allowed{cores: &cores, throttled: group.Throttled}
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
