package sample

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/cpu"
	gopsutil "github.com/shirou/gopsutil/v4/process"
)

// cpuSeconds returns what the processes have used since they began, all threads, user
// and system. It is nil without processes, and with an error.
func cpuSeconds(ctx context.Context, processes []*gopsutil.Process) (*float64, error) {
	if len(processes) == 0 {
		return nil, nil
	}
	sum := 0.0
	for _, p := range processes {
		t, err := p.TimesWithContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p.Pid, err)
		}
		sum += t.User + t.System
	}
	return &sum, nil
}

// memory returns the resident memory of the processes in bytes; nil if one of them cannot
// be read.
func memory(ctx context.Context, processes []*gopsutil.Process) *int64 {
	if len(processes) == 0 {
		return nil
	}
	var sum int64
	for _, p := range processes {
		m, err := p.MemoryInfoWithContext(ctx)
		if err != nil {
			return nil
		}
		sum += int64(m.RSS)
	}
	return &sum
}

// cpusOf returns the logical CPUs that the processes of this machine may run on, in
// order. It is nil if one of them cannot be read, as on other systems than Linux, and if
// there is none.
func cpusOf(pids ...int) (all []int) {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return nil
		}
		status, err := p.NewStatus()
		if err != nil {
			return nil
		}
		for _, cpu := range status.CpusAllowedList {
			all = append(all, int(cpu))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// deviceWritten returns the bytes written to a block device since the machine was started.
func deviceWritten(name string) (*float64, error) {
	text, err := os.ReadFile(filepath.Join("/sys/class/block", name, "stat"))
	if err != nil {
		return nil, err
	}
	const written, sector = 6, 512 // https://docs.kernel.org/block/stat.html
	fields := strings.Fields(string(text))
	if len(fields) <= written {
		return nil, fmt.Errorf("%s: %q is not known", name, text)
	}
	sectors, err := strconv.ParseFloat(fields[written], 64)
	sectors *= sector
	return &sectors, err
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
	busy, total []float64 // per core; the hypervisor's steal is in total only
	steal       float64   // of all cores: what the hypervisor gave to others
}

func readHost(ctx context.Context) (*hostTimes, error) {
	cores, err := cpu.TimesWithContext(ctx, true)
	if err != nil {
		return nil, err
	}
	h := &hostTimes{}
	for _, c := range cores {
		// Guest time is a part of user and nice time.
		busy := c.User + c.System + c.Nice + c.Irq + c.Softirq
		h.busy = append(h.busy, busy)
		h.total = append(h.total, busy+c.Idle+c.Iowait+c.Steal)
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
