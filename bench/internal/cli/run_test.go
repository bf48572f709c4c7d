package cli

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRun_OnEveryStore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ args, env []string }{
		"nothing to say":   {nil, []string{withoutSync}},
		"redis":            {[]string{"run", "redis", "--start"}, nil},
		"redis, http":      {[]string{"run", "redis", "--start", "--branches", "http", "--fail", "0.2", "--steps", "3", "--payload", "100"}, nil},
		"pebble, one only": {[]string{"run", "pebble", "--in-flight", "1"}, []string{withoutSync}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, tt.env...)
			got := p.run(append(tt.args, "--json", "--duration", "1s", "--warmup", "200ms")...)
			require.Equal(t, 0, got.code, got.stderr)
			var s result.Summary
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
			require.True(t, s.Validity.Valid, s.Validity.Because)
			require.Positive(t, s.Check.Acknowledged)
			require.Equal(t, s.Check.Acknowledged, *s.Check.Terminal)
			require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated+*s.Check.Unfinished)
			require.NotNil(t, s.CostPerSaga.AppCPUUS)
			require.Positive(t, *s.CostPerSaga.StoreRoundTrips)
			requireKeys(t, got.stdout)

			require.Equal(t, []string{resultsDir}, p.files())
			dirs, err := filepath.Glob(filepath.Join(p.dir, resultsDir, "*"))
			require.NoError(t, err)
			require.Len(t, dirs, 1)
			entries, err := os.ReadDir(dirs[0])
			require.NoError(t, err)
			var files []string
			for _, e := range entries {
				files = append(files, e.Name())
			}
			require.Equal(t, []string{
				"acknowledged.log", "latency.hgrm", "latency.hlog", "report.html", "report.md", "results.bin", "summary.json",
			}, files, "the store of the run is gone, and the server had nothing to log")
		})
	}
}

// Settings that are made for a coordinator in production do not spoil a run: its one
// client may have all connections, and its server does not wait for a load balancer.
func TestRun_WithTheSettingsOfAServerBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	p := newProgram(t, withoutSync, "SAGABENCH_SERVER_MAX_CONNS=80", "SAGABENCH_SERVER_DRAIN=1h")
	got := p.run("run", "--json", "--in-flight", "64", "--duration", "500ms", "--warmup", "100ms")
	got.requireRan(t)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Empty(t, s.Load.ErrorsByKind)
}

// Whether an open loop's sends were in time depends on what else this machine
// does, so the result may be invalid here, but for no other reason.
func TestRun_OpenLoop(t *testing.T) {
	t.Parallel()
	got := newProgram(t).run("run", "pebble", "--rate", "200/s", "--json", "--duration", "1s", "--warmup", "200ms")
	require.Contains(t, []int{exitOK, exitInvalid}, got.code, got.stderr)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Equal(t, result.Open, s.Load.Mode)
	require.InDelta(t, 200, *s.Load.OfferedPerS, 0.001)
	require.InDelta(t, 200, s.Load.Requests, 5, "those that were due: late ones are sent all the same")
	require.Positive(t, *s.Load.LatenessMS.Max)
	require.GreaterOrEqual(t, *s.LatencyMS.P50, *s.ServiceMS.P50)
	require.Zero(t, *s.Check.Lost)
	if got.code == exitInvalid {
		require.Contains(t, s.Validity.Because[0], "the load generator was late")
	}
}

// requireKeys compares the keys of a summary, level by level, with those that
// are promised.
func requireKeys(t *testing.T, summary string) {
	t.Helper()
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(summary), &tree))
	var keys []string
	var walk func(prefix string, node map[string]any)
	walk = func(prefix string, node map[string]any) {
		for key, value := range node {
			keys = append(keys, prefix+key)
			below, ok := value.(map[string]any)
			if free := []string{"run.store.settings", "load.errors_by_kind", "environment.versions", "environment.store_disk"}; ok && !slices.Contains(free, prefix+key) {
				walk(prefix+key+".", below)
			}
		}
	}
	walk("", tree)
	slices.Sort(keys)
	got := strings.Join(keys, "\n") + "\n"
	const golden = "testdata/summary-keys.golden"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestRun_PrintsAReport(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run("--duration", "2s", "--warmup", "100ms", "--out", "here")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, strings.Split(got.stdout, "\n")[0], "sagas/s on pebble (D3")
	require.Contains(t, got.stdout, "none lost")
	require.True(t, strings.HasSuffix(got.stdout, "\nDetails: bench report --verbose here, or report.html there\n"), got.stdout)
	require.NotContains(t, got.stdout, "Environment")
	whole := p.run("report", "here", "--verbose")
	require.Contains(t, whole.stdout, "Environment")
	require.Contains(t, whole.stdout, "go run bench/main.go --duration 2s --warmup 100ms --out here")
	require.Contains(t, got.stderr, "measuring")
	attack := p.run("report", "here/results.bin")
	require.Equal(t, exitOK, attack.code, attack.stderr)
	require.Contains(t, attack.stdout, "not audited", "its requests are a file of vegeta's")

	again := p.run("--duration", "1s", "--out", "here")
	require.Equal(t, exitError, again.code)
	require.Contains(t, again.stderr, "not empty")
}

// Ctrl-C ends a run early, with what it has.
func TestRun_Interrupted(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("run", "redis", "--start", "--duration", "1h", "--warmup", "0s", "--json")
	stdout, stderr := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "measuring")
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Process.Signal(os.Interrupt) // timeout(1) sends two at once
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), stderr)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout.String()), &s))
	require.False(t, s.Validity.Valid)
	require.Contains(t, s.Validity.Because[0], "interrupted")
	require.Positive(t, s.Load.Requests)
	require.Zero(t, *s.Check.Lost)
}

func TestRun_TheServerDies(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("run", "pebble", "--duration", "1h", "--warmup", "0s", "--json")
	stdout, stderr := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "measuring")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(childOf(t, cmd.Process.Pid), syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), stderr)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout.String()), &s))
	require.Contains(t, s.Validity.Because[0], "the bench server ended in the middle")
	require.Zero(t, *s.Check.Lost, "killed or not, what was acknowledged is there")
}

// No server that a run started survives it, not even when it is killed.
func TestRun_Killed_LeavesNothingRunning(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("run", "redis", "--start", "--duration", "1h", "--warmup", "0s")
	stderr := newLines()
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "measuring")
	require.NoError(t, err)
	children := childrenOf(t, cmd.Process.Pid)
	require.Len(t, children, 2, "the bench server and redis-server")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, pid := range children {
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, patience, 10*time.Millisecond)
	}
}
