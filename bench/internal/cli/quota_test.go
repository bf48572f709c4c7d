package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// quotaCores is the quota of newGroup.
const quotaCores = 0.25

// newGroup makes a control group that may use a quarter of a core, and returns the file that
// takes its processes.
func newGroup(t *testing.T) (processes string) {
	t.Helper()
	dir := "/sys/fs/cgroup/cpu" // version 1
	quota := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "25000"}
	if _, err := os.Stat(dir); err != nil {
		dir, quota = "/sys/fs/cgroup", map[string]string{"cpu.max": "25000 100000"}
		enabled, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if !slices.Contains(strings.Fields(string(enabled)), "cpu") {
			t.Skip("there is no CPU controller for groups of ours in " + dir)
		}
	}
	dir = filepath.Join(dir, fmt.Sprintf("sagabench-%d-%s", os.Getpid(), t.Name()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("control groups cannot be made: ", err)
	}
	t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
	for name, value := range quota {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600))
	}
	return filepath.Join(dir, "cgroup.procs")
}

// requireLimit compares the limit in the findings of a closed loop with the one that its
// resources show. How busy they were depends on the machine: package limit decides on figures
// that are given.
func requireLimit(t *testing.T, stdout string) result.Summary {
	t.Helper()
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	found := limit.Find(s.Resources, s.Load.Errors, limit.Machine{Shared: s.Run.SharedHost})
	want := "limit: " + found.Evidence
	if found.Resource != "" {
		want = "limit: " + found.Resource + ": " + found.Evidence
	}
	require.Contains(t, strings.Join(slices.Concat(s.Validity.Warnings, s.Validity.Notes), "\n"), want)
	return s
}

func TestRun_KnowsTheCPUQuotaOfItsStore(t *testing.T) {
	t.Parallel()
	processes := newGroup(t)
	server := labtest.Start(t, lab.Redis, lab.Config{})
	require.NoError(t, os.WriteFile(processes, []byte(strconv.Itoa(server.PID())), 0o600))
	got := newProgram(t, "SAGABENCH_REDIS_URL="+server.URL()).run("run", "redis", "--json", "--duration", "500ms", "--warmup", "100ms")
	s := requireLimit(t, got.stdout)
	require.InDelta(t, quotaCores, *s.Resources.StoreCoresUsable, 1e-9)
	require.NotNil(t, s.Resources.StoreThrottled, s.Validity.Warnings)
	require.NotNil(t, s.Resources.LoadThrottled)
	require.NotEqual(t, quotaCores, *s.Resources.LoadCoresUsable, "the quota is the store's")
}

// acknowledging is a server that takes next to no CPU.
func acknowledging(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"dtm_result":"SUCCESS","gid":"g"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestLoad_KnowsItsOwnCPUQuota(t *testing.T) {
	t.Parallel()
	processes := newGroup(t)
	s := loadWithin(t, "sh", "-c", `echo $$ >"$0" && exec "$@"`, processes)
	require.InDelta(t, quotaCores, *s.Resources.LoadCoresUsable, 1e-9)
	require.InDelta(t, quotaCores, *s.Environment.CPUQuota, 1e-9)
	require.NotNil(t, s.Resources.LoadThrottled, s.Validity.Warnings)
}

func TestLoad_OnOneCPU_HasOneCore(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("no taskset here")
	}
	s := loadWithin(t, "taskset", "--cpu-list", "0")
	require.InDelta(t, 1, *s.Resources.LoadCoresUsable, 1e-9)
	require.Equal(t, "0", *s.Environment.CPUs.Load)
}

// loadWithin runs a load whose command begins with another program.
func loadWithin(t *testing.T, words ...string) result.Summary {
	t.Helper()
	load := newProgram(t).command("load", "--target", acknowledging(t), "--json", "--duration", "300ms", "--warmup", "100ms")
	var err error
	load.Args = append(append(words, load.Path), load.Args[1:]...)
	load.Path, err = exec.LookPath(words[0])
	require.NoError(t, err)
	stdout, err := load.Output()
	require.NoError(t, err)
	return requireLimit(t, string(stdout))
}
