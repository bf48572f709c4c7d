package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	pid = 7

	mountV2     = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	mountCPU    = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	mountMemory = "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	mountHybrid = "34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

func TestIn_ReadsTheLowestLimitOfAllGroups(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	bytes := func(x int64) *int64 { return &x }
	for name, c := range map[string]struct {
		groups, mounts string
		files          map[string]string
		quota          *float64
		memory         *int64
		throttled      Throttled
	}{
		"v2": {"0::/a/b\n", mountV2, map[string]string{
			"a/cpu.max": "150000 100000", "a/cpu.stat": "usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5", "a/b/cpu.max": "max 100000", "a/b/memory.max": "4096", "a/memory.max": "max",
		}, value(1.5), bytes(4096), Throttled{"a": 400 * time.Millisecond}},
		"v2, the group above allows less": {"0::/a/b\n", mountV2, map[string]string{
			"cpu.max": "25000 50000", "cpu.stat": "nr_throttled 1", "a/b/cpu.max": "200000 100000", "a/b/memory.max": "4096", "memory.max": "1024",
		}, value(0.5), bytes(1024), Throttled{".": 50 * time.Millisecond, "a/b": 0}},
		"v2, a container": {"0::/\n", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", map[string]string{"cpu.max": "200000 100000"}, value(2), nil, Throttled{".": 0}},
		"v2, no limits":   {"0::/a\n", mountV2, map[string]string{"a/cpu.max": "max 100000", "a/memory.max": "max"}, nil, nil, Throttled{}},
		"v1": {"5:cpu,cpuacct:/a/b\n4:memory:/m\n3:pids:/p\n", mountCPU + mountMemory, map[string]string{
			"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000", "cpu/a/cpu.stat": "nr_periods 3\nnr_throttled 2\nthrottled_time 5",
			"cpu/a/b/cpu.cfs_quota_us": "-1", "cpu/a/b/cpu.cfs_period_us": "100000", "memory/m/memory.limit_in_bytes": "8192", "memory/memory.limit_in_bytes": "9223372036854771712",
		}, value(0.5), bytes(8192), Throttled{"cpu/a": 200 * time.Millisecond}},
		"v1, a container without a namespace": {"5:cpu,cpuacct:/docker/c\n", "32 31 0:29 /docker/c /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", map[string]string{
			"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000",
		}, value(3), nil, Throttled{"cpu": 0}},
		"both": {"5:cpu:/a\n0::/a\n", mountCPU + mountHybrid, map[string]string{
			"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000", "unified/a/memory.max": "4096",
		}, value(0.5), bytes(4096), Throttled{"cpu/a": 0}},
		"not mounted": {"5:cpu:/a\n0::/a\n", "", nil, nil, nil, Throttled{}},
	} {
		root := fixture(t, c.groups, c.mounts, c.files)
		g, err := in(root, pid)
		require.NoError(t, err, name)
		require.Equal(t, c.quota, g.Quota, name)
		require.Equal(t, c.memory, g.Memory, name)
		got := Throttled{}
		for dir, d := range g.Throttled {
			below, err := filepath.Rel(filepath.Join(root, "sys/fs/cgroup"), dir)
			require.NoError(t, err)
			got[below] = d
		}
		require.Equal(t, c.throttled, got, name)
	}
}

func TestIn_SaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		groups, mounts string
		files          map[string]string
		want           string
	}{
		"outside":   {"0::/../other\n", mountV2, nil, "/../other is outside of what is mounted at /sys/fs/cgroup"},
		"elsewhere": {"5:cpu:/docker/d\n", "32 31 0:29 /docker/c /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", nil, "/docker/d is outside"},
		"no number": {"0::/a\n", mountV2, map[string]string{"a/cpu.max": "much 100000"}, `parsing "much"`},
	} {
		_, err := in(fixture(t, c.groups, c.mounts, c.files), pid)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := in(fixture(t, "0::/\n", mountV2, nil), pid+1)
	require.ErrorContains(t, err, "process 8")
}

func fixture(t *testing.T, groups, mounts string, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(filepath.Join("proc", strconv.Itoa(pid), "cgroup"), groups)
	write("proc/self/mountinfo", mounts)
	for name, text := range files {
		write(filepath.Join("sys/fs/cgroup", name), text+"\n")
	}
	return root
}

func TestThrottled_SinceIsThatOfTheGroupWithTheMost(t *testing.T) {
	t.Parallel()
	require.Equal(t, 3*time.Second, *Throttled{"a": 4 * time.Second, "b": 3 * time.Second}.Since(Throttled{"a": time.Second, "b": 2 * time.Second}))
	require.Zero(t, *Throttled{}.Since(Throttled{}), "without a quota nothing is throttled")
	for name, before := range map[string]Throttled{"unknown": nil, "another": {"b": 0}, "more": {}, "backwards": {"a": 5}} {
		require.Nil(t, Throttled{"a": 4}.Since(before), name)
	}
	require.Nil(t, Throttled(nil).Since(Throttled{}))
}

func TestOf_ThisProcess(t *testing.T) {
	t.Parallel()
	g, err := Of(os.Getpid())
	require.NoError(t, err)
	require.NotNil(t, g.Throttled)
	require.Positive(t, OwnCores())
	_, err = Of(1 << 30)
	require.Error(t, err)
}
