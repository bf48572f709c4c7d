package lab_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

func TestStart_LimitsTheCPU(t *testing.T) {
	t.Parallel()
	var before unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	server := labtest.Start(t, lab.Redis, lab.Config{CPUs: 1})
	switch how, _, _ := strings.Cut(server.CPULimit(), ": 1 of "); how {
	case "CPU affinity":
		var cpus unix.CPUSet
		require.NoError(t, unix.SchedGetaffinity(server.PID(), &cpus))
		require.Equal(t, 1, cpus.Count())
	case "cgroup v2":
		group, err := os.ReadFile(filepath.Join("/proc", "self", "cgroup"))
		require.NoError(t, err)
		require.NotContains(t, string(group), "sagabench-", "the limit is the server's, not ours")
	default:
		t.Fatal(how)
	}
	require.Empty(t, labtest.Start(t, lab.Redis, lab.Config{}).CPULimit())
	var after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, before, after)

	_, err := lab.Redis.Start(t.Context(), lab.Config{CPUs: float64(2 * runtime.NumCPU())})
	require.ErrorContains(t, err, "cores: only ")
}

// cgroupTree writes what the kernel shows of a process in /a/b.
func cgroupTree(t *testing.T, controllers map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("proc/self/cgroup", "3:cpuset:/\n0::/a/b\n")
	for _, dir := range []string{"", "a", "a/b"} {
		write(filepath.Join("sys/fs/cgroup", dir, "cgroup.subtree_control"), controllers[dir])
	}
	return root
}

func TestMakeCgroup_TakesTheNearestWithTheController(t *testing.T) {
	t.Parallel()
	root := cgroupTree(t, map[string]string{"": "cpu memory\n", "a": "memory cpu\n", "a/b": "cpuset memory\n"})
	dir, err := lab.MakeCgroup(root, 1.5)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "sys/fs/cgroup/a"), filepath.Dir(dir))
	quota, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	require.NoError(t, err)
	require.Equal(t, "150000 100000", strings.TrimSpace(string(quota)))
}

func TestMakeCgroup_FailsWithoutTheController(t *testing.T) {
	t.Parallel()
	_, err := lab.MakeCgroup(cgroupTree(t, nil), 1)
	require.ErrorContains(t, err, "no cgroup v2 with the CPU controller")
	_, err = lab.MakeCgroup(t.TempDir(), 1)
	require.ErrorContains(t, err, "no cgroup v2")
}
