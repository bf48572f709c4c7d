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

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
)

// newGroup makes a control group that may use a fiftieth of a core, and returns the file that
// takes its processes. So little can be filled on a machine that other tests keep busy.
func newGroup(t *testing.T) (processes string) {
	t.Helper()
	dir := "/sys/fs/cgroup/cpu" // version 1
	quota := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "2000"}
	if _, err := os.Stat(dir); err != nil {
		dir, quota = "/sys/fs/cgroup", map[string]string{"cpu.max": "2000 100000"}
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

func summaryOf(t *testing.T, stdout []byte) (s result.Summary, limit string) {
	t.Helper()
	require.NoError(t, json.Unmarshal(stdout, &s))
	for _, finding := range slices.Concat(s.Validity.Warnings, s.Validity.Notes) {
		if strings.HasPrefix(finding, "limit: ") {
			limit = finding
		}
	}
	return s, limit
}

func TestRun_AStoreWithACPUQuotaIsTheLimit(t *testing.T) {
	t.Parallel()
	processes := newGroup(t)
	server, err := lab.Redis.Start(t.Context(), lab.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	require.NoError(t, os.WriteFile(processes, []byte(strconv.Itoa(server.PID())), 0o600))
	// Sagas that cost the store as much as the app.
	got := newProgram(t, "SAGABENCH_REDIS_URL="+server.URL()).run("run", "redis", "--json", "--duration", "3s", "--warmup", "500ms", "--steps", "20", "--payload", "4000")
	s, limit := summaryOf(t, []byte(got.stdout))
	r := s.Resources
	require.InDelta(t, 0.02, *r.StoreCoresUsable, 1e-9)
	require.Greater(t, *r.StoreThrottled, 0.05)
	require.Zero(t, *r.LoadThrottled)
	require.Contains(t, limit, "limit: store CPU: the store keeps ")
	require.Contains(t, limit, "of the 0.02 cores that it may use (cgroup quota) busy")
	require.Contains(t, strings.Join(s.Validity.Warnings, "\n"), "throttled: a cgroup's CPU quota stopped the store in ")
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

func TestLoad_AGeneratorWithACPUQuotaIsTheLimit(t *testing.T) {
	t.Parallel()
	processes := newGroup(t)
	load := newProgram(t).command("load", "--target", acknowledging(t), "--json", "--duration", "2s", "--warmup", "200ms")
	load.Args = append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, processes, load.Path}, load.Args[1:]...)
	load.Path = "/bin/sh"
	stdout, err := load.Output()
	require.NoError(t, err)
	s, limit := summaryOf(t, stdout)
	require.InDelta(t, 0.02, *s.Resources.LoadCoresUsable, 1e-9)
	require.InDelta(t, 0.02, *s.Environment.CPUQuota, 1e-9)
	require.Greater(t, *s.Resources.LoadThrottled, 0.05)
	require.Contains(t, limit, "limit: load generator: it keeps ")
	require.Contains(t, limit, "of the 0.02 cores that it may use (cgroup quota) busy")
}

func TestLoad_AGeneratorOnOneCPUHasOneCore(t *testing.T) {
	t.Parallel()
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		t.Skip("no taskset here")
	}
	load := newProgram(t).command("load", "--target", acknowledging(t), "--json", "--duration", "2s", "--warmup", "200ms")
	load.Args = append([]string{"taskset", "--cpu-list", "0", load.Path}, load.Args[1:]...)
	load.Path = taskset
	stdout, err := load.Output()
	require.NoError(t, err)
	s, limit := summaryOf(t, stdout)
	require.InDelta(t, 1, *s.Resources.LoadCoresUsable, 1e-9)
	require.Equal(t, "0", *s.Environment.CPUs.Load)
	if *s.Resources.LoadCores >= 0.85 { // other tests may use that CPU
		require.Contains(t, limit, "limit: load generator: it keeps ")
		require.Contains(t, limit, "of the one core that it may use busy")
	}
}
