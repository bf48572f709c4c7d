// Package cgroup reads what Linux control groups allow a process, version 1 and 2: its CPU
// quota, how often that stopped it, and its memory limit.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Group is the control groups that a process is in, with all groups above them that this
// process can see.
type Group struct {
	Quota     *float64  // lowest CPU quota of them, in cores; nil: none
	Memory    *int64    // lowest memory limit of them, in bytes; nil: none
	Throttled Throttled // by the groups that have a CPU quota
}

// Throttled is the time, by group, of the quota's periods in which the group used up its
// quota and was stopped until the next one.
type Throttled map[string]time.Duration

// Since returns the throttled time between earlier and t, of the group with the most. It
// returns nil if one of them is unknown, or if they are of other groups.
func (t Throttled) Since(earlier Throttled) *time.Duration {
	if t == nil || earlier == nil || len(t) != len(earlier) {
		return nil
	}
	most := time.Duration(0)
	for dir, now := range t {
		before, ok := earlier[dir]
		if !ok || now < before {
			return nil
		}
		most = max(most, now-before)
	}
	return &most
}

// Of returns the groups of a process on this machine.
func Of(pid int) (Group, error) { return in("/", pid) }

// OwnCores returns how many cores this process may use: those of its CPU affinity, of
// GOMAXPROCS, and of its CPU quota.
func OwnCores() float64 {
	cores := float64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))
	if g, err := Of(os.Getpid()); err == nil && g.Quota != nil { // without cgroups there is no quota
		cores = min(cores, *g.Quota)
	}
	return cores
}

// OwnThrottled returns the throttled time of this process since its groups were made, of
// the group with the most; 0 if it is unknown.
func OwnThrottled() time.Duration {
	g, _ := Of(os.Getpid())
	most := time.Duration(0)
	for _, d := range g.Throttled {
		most = max(most, d)
	}
	return most
}

// in is Of for the files below root.
func in(root string, pid int) (g Group, err error) {
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return g, fmt.Errorf("cgroup: %w", err)
	}
	p, err := proc.Proc(pid)
	if err != nil {
		return g, fmt.Errorf("cgroup: process %d: %w", pid, err)
	}
	groups, err := p.Cgroups()
	if err != nil {
		return g, fmt.Errorf("cgroup: process %d: %w", pid, err)
	}
	mounts, err := proc.GetMounts()
	if err != nil {
		return g, fmt.Errorf("cgroup: mounts: %w", err)
	}
	g.Throttled = Throttled{}
	for _, c := range groups {
		top, below, err := place(c, mounts)
		if err != nil {
			return Group{}, fmt.Errorf("cgroup: process %d: %w", pid, err)
		}
		if top == "" {
			continue // its controllers limit nothing here
		}
		top = filepath.Join(root, top)
		for dir := filepath.Join(top, below); ; dir = filepath.Dir(dir) {
			if err := g.add(dir); err != nil {
				return Group{}, fmt.Errorf("cgroup: %w", err)
			}
			if dir == top {
				break
			}
		}
	}
	return g, nil
}

// place returns where the hierarchy of a group is mounted, and the group's path below that.
// top is empty if it is not mounted, or has neither of the controllers that are read.
func place(c procfs.Cgroup, mounts []*procfs.MountInfo) (top, below string, err error) {
	for _, m := range mounts {
		if !holds(m, c) {
			continue
		}
		below, outside := filepath.Rel(m.Root, c.Path)
		// The kernel writes /.. for what is outside of this process's namespace.
		if outside == nil && filepath.IsLocal(below) && !strings.HasPrefix(c.Path, "/..") {
			return m.MountPoint, below, nil
		}
		err = fmt.Errorf("%s is outside of what is mounted at %s", c.Path, m.MountPoint)
	}
	return "", "", err
}

// holds reports whether the hierarchy of a group is mounted there.
func holds(m *procfs.MountInfo, c procfs.Cgroup) bool {
	if c.HierarchyID == 0 {
		return m.FSType == "cgroup2"
	}
	return m.FSType == "cgroup" && slices.ContainsFunc([]string{"cpu", "memory"}, func(controller string) bool {
		_, mounted := m.SuperOptions[controller]
		return mounted && slices.Contains(c.Controllers, controller)
	})
}

// add reads the files of one group. A group lacks the files of other controllers, and of
// the other version.
func (g *Group) add(dir string) error {
	var files reader
	quota, period := files.fields(dir, "cpu.max"), 0.0
	if len(quota) == 2 && quota[0] != "max" {
		period = files.number(quota[1])
	} else {
		quota = files.fields(dir, "cpu.cfs_quota_us")
		if len(quota) == 1 && quota[0] != "-1" {
			period = files.number(files.fields(dir, "cpu.cfs_period_us")...)
		}
	}
	if period > 0 {
		cores := files.number(quota[0]) / period
		g.Quota = least(g.Quota, cores)
		g.Throttled[dir] = time.Duration(files.throttledPeriods(dir) * period * float64(time.Microsecond))
	}
	memory := files.fields(dir, "memory.max")
	if len(memory) == 0 {
		memory = files.fields(dir, "memory.limit_in_bytes")
	}
	// Version 1 has the highest whole number of pages for no limit.
	if len(memory) == 1 && memory[0] != "max" {
		if limit := files.number(memory[0]); limit < math.MaxInt64/2 {
			g.Memory = least(g.Memory, int64(limit))
		}
	}
	return files.err
}

func least[T float64 | int64](a *T, b T) *T {
	if a != nil && *a < b {
		return a
	}
	return &b
}

// reader reads the files of a group, and keeps the first error.
type reader struct{ err error }

// fields returns none if there is no such file.
func (r *reader) fields(dir, name string) []string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && r.err == nil {
		r.err = err
	}
	return strings.Fields(string(text))
}

func (r *reader) number(text ...string) float64 {
	x, err := strconv.ParseFloat(strings.Join(text, " "), 64)
	if err != nil && r.err == nil {
		r.err = err
	}
	return x
}

// throttledPeriods counts the periods in which the group used up its quota.
func (r *reader) throttledPeriods(dir string) float64 {
	fields := r.fields(dir, "cpu.stat")
	if i := slices.Index(fields, "nr_throttled"); i >= 0 && i+1 < len(fields) {
		return r.number(fields[i+1])
	}
	return 0
}
