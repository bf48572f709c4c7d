package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// cpuLimit keeps a child, and what that starts, to a number of cores: by a cgroup of
// version 2, or by CPU affinity. A nil limit is none.
type cpuLimit struct {
	how   string // in words
	group *os.File
	cpus  unix.CPUSet // if group is nil
}

// newCPULimit returns a limit of so many cores. Parts of a core take a cgroup.
func newCPULimit(cores float64) (*cpuLimit, error) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return nil, fmt.Errorf("limit to %v cores: %w", cores, err)
	}
	if cores > float64(own.Count()) {
		return nil, fmt.Errorf("limit to %v cores: only %d are there", cores, own.Count())
	}
	dir, err := makeCgroup("/", cores)
	if err == nil {
		var group *os.File
		if group, err = os.Open(dir); err == nil {
			return &cpuLimit{how: fmt.Sprintf("cgroup v2: %v of %d CPUs", cores, own.Count()), group: group}, nil
		}
		_ = os.Remove(dir)
	}
	if cores != math.Trunc(cores) {
		return nil, fmt.Errorf("limit to %v cores: %w, and CPU affinity takes whole cores", cores, err)
	}
	// The last ones: the kernel serves most interrupts on the first.
	l := &cpuLimit{how: fmt.Sprintf("CPU affinity: %v of %d CPUs", cores, own.Count())}
	for cpu := len(own)*64 - 1; l.cpus.Count() < int(cores); cpu-- {
		if own.IsSet(cpu) {
			l.cpus.Set(cpu)
		}
	}
	return l, nil
}

// start starts the child within the limit. The calling goroutine must be locked to its
// thread: the child inherits the affinity of that thread.
func (l *cpuLimit) start(cmd *exec.Cmd) error {
	switch {
	case l == nil:
		return cmd.Start()
	case l.group != nil:
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(l.group.Fd())
		return cmd.Start()
	}
	var own unix.CPUSet
	if err := errors.Join(unix.SchedGetaffinity(0, &own), unix.SchedSetaffinity(0, &l.cpus)); err != nil {
		return fmt.Errorf("set the CPU affinity: %w", err)
	}
	err := cmd.Start()
	_ = unix.SchedSetaffinity(0, &own) // as it was: it cannot fail
	return err
}

// words says how the limit is set; empty without one.
func (l *cpuLimit) words() string {
	if l == nil {
		return ""
	}
	return l.how
}

// release removes the cgroup of a child that has ended.
func (l *cpuLimit) release() {
	if l == nil || l.group == nil {
		return
	}
	defer l.group.Close()
	dir := l.group.Name()
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // what the child has left
	for deadline := time.Now().Add(time.Second); os.Remove(dir) != nil && time.Now().Before(deadline); {
		time.Sleep(readyPause) // the kernel frees the last process
	}
}

// cgroups counts those that were made.
var cgroups atomic.Int64

// makeCgroup makes a cgroup with a CPU quota beside or above that of this process, in the
// nearest one that has the CPU controller for its children. It returns its directory.
func makeCgroup(root string, cores float64) (string, error) {
	own, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return "", fmt.Errorf("no cgroup v2: %w", err)
	}
	path := ""
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = p
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") { // the kernel's words for what is outside of our namespace
		return "", errors.New("no cgroup v2 of this process can be seen")
	}
	const period = 100_000 // µs, the kernel's default
	quota := strconv.Itoa(int(cores*period)) + " " + strconv.Itoa(period)
	err = errors.New("no cgroup v2 with the CPU controller")
	top := filepath.Join(root, "sys/fs/cgroup")
	if _, hybrid := os.Stat(filepath.Join(top, "unified")); hybrid == nil {
		top = filepath.Join(top, "unified")
	}
	for dir := filepath.Join(top, path); ; dir = filepath.Dir(dir) {
		controllers, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if slices.Contains(strings.Fields(string(controllers)), "cpu") {
			made := filepath.Join(dir, fmt.Sprintf("sagabench-%d-%d", os.Getpid(), cgroups.Add(1)))
			if err = os.Mkdir(made, 0o755); err == nil {
				if err = os.WriteFile(filepath.Join(made, "cpu.max"), []byte(quota), 0o644); err == nil {
					return made, nil
				}
				_ = os.Remove(made)
			}
		}
		if dir == top || len(dir) <= len(top) {
			return "", fmt.Errorf("make a cgroup v2: %w", err)
		}
	}
}
