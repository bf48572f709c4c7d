package probe

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	gopsutil "github.com/shirou/gopsutil/v4/process"
)

// process is a process of this machine.
type process struct{ p *gopsutil.Process }

func newProcess(ctx context.Context, pid int) (process, error) {
	p, err := gopsutil.NewProcessWithContext(ctx, int32(pid))
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return process{p}, nil
}

// cpuSeconds is what the processes used since they began, all threads, user and
// system; nil with an error.
func cpuSeconds(ctx context.Context, processes []process) (*float64, error) {
	sum := 0.0
	for _, p := range processes {
		t, err := p.p.TimesWithContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p.p.Pid, err)
		}
		sum += t.User + t.System
	}
	return &sum, nil
}

// memory is the resident memory of the processes in bytes; nil when one of
// them cannot be read.
func memory(ctx context.Context, processes []process) *int64 {
	if len(processes) == 0 {
		return nil
	}
	var sum int64
	for _, p := range processes {
		m, err := p.p.MemoryInfoWithContext(ctx)
		if err != nil {
			return nil
		}
		sum += int64(m.RSS)
	}
	return &sum
}

// ownUse is what this process used since it began.
type ownUse struct {
	cpu     time.Duration // user and system
	gcPause time.Duration
}

func readOwnUse() (ownUse, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return ownUse{}, fmt.Errorf("getrusage: %w", err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return ownUse{
		cpu:     time.Duration(u.Utime.Nano() + u.Stime.Nano()),
		gcPause: time.Duration(m.PauseTotalNs),
	}, nil
}

// hostTimes are CPU seconds of this machine since it was started.
type hostTimes struct {
	busy, total []float64 // per core
	steal       float64   // of all cores: what the hypervisor gave to others
}

func readHost(ctx context.Context) (*hostTimes, error) {
	cores, err := cpu.TimesWithContext(ctx, true)
	if err != nil {
		return nil, err
	}
	h := &hostTimes{}
	for _, c := range cores {
		idle := c.Idle + c.Iowait
		// Guest time is a part of user and nice time.
		busy := c.User + c.System + c.Nice + c.Irq + c.Softirq + c.Steal
		h.busy = append(h.busy, busy)
		h.total = append(h.total, busy+idle)
		h.steal += c.Steal
	}
	return h, nil
}

// since gives the shares of the time between earlier and h that all cores, and
// the busiest one, were busy, and that all cores were stolen; nil without
// measurable time.
func (h *hostTimes) since(earlier *hostTimes) (busy, busiest, steal *float64) {
	if h == nil || earlier == nil || len(h.total) != len(earlier.total) {
		return nil, nil, nil
	}
	var allBusy, all, most float64
	for i := range h.total {
		b, t := h.busy[i]-earlier.busy[i], h.total[i]-earlier.total[i]
		allBusy, all = allBusy+b, all+t
		if t > 0 {
			most = max(most, b/t)
		}
	}
	if all <= 0 {
		return nil, nil, nil
	}
	stolen := (h.steal - earlier.steal) / all
	allBusy /= all
	return &allBusy, &most, &stolen
}
