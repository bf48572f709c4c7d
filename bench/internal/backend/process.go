package backend

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// serverProcess is a server's process on this machine, with those that it started.
type serverProcess struct {
	pid     int   // 0: see missing
	missing error // why there is none
}

// findProcess returns the process that the server says, or that listens on its port.
func findProcess(ctx context.Context, server Server, port int, programs ...string) (p serverProcess) {
	switch {
	case len(server.PIDs) > 0:
		p.pid = server.PIDs[0]
	case !server.Local:
		p.missing = errors.New("it runs on another machine")
	default:
		p.pid, p.missing = listener(ctx, port, programs...)
	}
	return p
}

// sumTries bounds how often the processes are read again because one of them ended
// meanwhile.
const sumTries = 20

// sum adds up what the process has used and what those have that it started: PostgreSQL
// has one for each connection, Redis one for each snapshot or rewrite. What ended ones
// have used, the kernel has added to their parent.
func (p serverProcess) sum(ctx context.Context, read func(procfs.Proc) (float64, error)) (*float64, error) {
	if p.pid == 0 {
		return nil, p.missing
	}
	for range sumTries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		endedBefore, err := endedOf(p.pid)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p.pid, err)
		}
		sum, err := readProcess(p.pid, read)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p.pid, err)
		}
		whole := true
		for _, child := range childrenOf(p.pid) {
			used, err := readProcess(child, read)
			whole = whole && err == nil // else it has just ended
			sum += used
		}
		if ended, err := endedOf(p.pid); err == nil && whole && ended == endedBefore {
			return &sum, nil
		}
	}
	return nil, fmt.Errorf("process %d: its processes come and go too fast to be counted", p.pid)
}

func readProcess(pid int, read func(procfs.Proc) (float64, error)) (float64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	return read(p)
}

// endedOf returns a number that grows whenever a child of the process has ended.
func endedOf(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return uint64(stat.CMinFlt) + uint64(stat.CUTime+stat.CSTime), err
}

// cpuOf returns the seconds that a process has used, user and system, with its children
// that have ended.
func cpuOf(p procfs.Proc) (float64, error) {
	stat, err := p.Stat()
	const ticksPerSecond = 100 // the kernel's USER_HZ wherever Go runs on Linux
	return stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/ticksPerSecond, err
}

// writtenBy returns the bytes that a process has had written to disks, with its children
// that have ended: whole pages, and without files that were removed before. The kernel
// counts them when they are to be written. Those of a file system's journal are not its.
//
// If a file is cached in large folios, a small write counts as its whole folio, although
// the disk gets the pages that were changed only. Measured on ext4 under Linux 6.18, that
// is 26 times too much for PostgreSQL. So counters.mostWritten limits it.
func writtenBy(p procfs.Proc) (float64, error) {
	io, err := p.IO()
	return float64(io.WriteBytes) - float64(io.CancelledWriteBytes), err
}

// passedBy returns the bytes that a process has passed to calls of write and the like, with
// its children that have ended.
func passedBy(p procfs.Proc) (float64, error) {
	io, err := p.IO()
	return float64(io.WChar), err
}

// memoryOf returns the resident memory of a process, with its share of what it shares.
func memoryOf(p procfs.Proc) (float64, error) {
	rollup, err := p.ProcSMapsRollup()
	return float64(rollup.Pss), err
}

// childrenOf lists the processes that pid has started and that have not ended.
func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails only on a bad pattern
	for _, task := range tasks {
		list, _ := os.ReadFile(task) // the thread may be gone
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

var errNoListener = errors.New("no process that we may look at listens; run as root, or as the server's user")

// listener returns the process that listens on a TCP port of this machine. If processes
// that it started listen, too, it is the first of them. Its program must be one of those
// named: what forwards to a server is not the server.
func listener(ctx context.Context, port int, programs ...string) (pid int, err error) {
	connections, err := net.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return 0, fmt.Errorf("look for the process that listens on port %d: %w", port, err)
	}
	var pids []int32
	for _, c := range connections {
		if c.Status == "LISTEN" && int(c.Laddr.Port) == port && c.Pid > 0 {
			pids = append(pids, c.Pid)
		}
	}
	err = errNoListener
	for _, candidate := range pids {
		p, failed := process.NewProcessWithContext(ctx, candidate)
		if failed != nil {
			continue
		}
		parent, _ := p.PpidWithContext(ctx)
		if slices.Contains(pids, parent) {
			continue
		}
		name, _ := p.NameWithContext(ctx)
		if slices.Contains(programs, name) {
			return int(candidate), nil
		}
		err = fmt.Errorf("%q listens, which only forwards", name)
	}
	return 0, fmt.Errorf("port %d: %w", port, err)
}

// Local reports whether a host is this machine.
func Local(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := stdnet.ParseIP(host)
	if ip == nil || ip.IsLoopback() {
		return ip != nil
	}
	addresses, _ := stdnet.InterfaceAddrs() // without them it is another machine
	return slices.ContainsFunc(addresses, func(a stdnet.Addr) bool {
		own, ok := a.(*stdnet.IPNet)
		return ok && own.IP.Equal(ip)
	})
}
