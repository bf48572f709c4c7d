package hosts

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/deploy/netlab"
)

var apps = []string{"app1", "app2"}

// Bench servers on two app hosts share the Redis of a third one. The load host drives both
// at the same time, each by a process of its own, and merges the results. Then the store is
// audited. make hosts shows what this prints.
func TestTwoAppHosts_AreMeasuredTogether(t *testing.T) {
	t.Parallel()
	lab := newLab(t, link)
	dir := *out
	if dir == "" {
		dir = t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	token := "SAGABENCH_SERVER_TOKEN=" + rand.Text()
	load := lab.Host("load")
	command := func(args ...string) *exec.Cmd {
		cmd := bench(t, args...)
		cmd.Dir, cmd.Env = dir, append(cmd.Env, token)
		return cmd
	}

	var servers, loads []*program
	for _, app := range apps {
		server, err := start(soon(t), lab.Host(app), command(redisURL, "--listen", "0.0.0.0:8080"), "serving on ")
		require.NoError(t, err)
		servers = append(servers, server)
	}
	for _, app := range apps {
		p, err := start(soon(t), load, command("load", redisURL, "--target", "http://"+app+":8080", "--in-flight", fmt.Sprint(*inFlight),
			"--duration", duration.String(), "--warmup", "500ms", "--out", app), "")
		require.NoError(t, err)
		loads = append(loads, p)
	}
	for _, p := range loads {
		<-p.ended
		require.Contains(t, []int{0, 2}, p.cmd.ProcessState.ExitCode(), "a result was written: %s", &p.log)
	}
	for _, s := range servers {
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, <-s.ended, "%s", &s.log)
	}
	show := func(args ...string) {
		output, code := run(t, load, command(args...))
		fmt.Printf("\n$ bench %s\n%s", strings.Join(args, " "), output)
		require.Contains(t, []int{0, 2}, code, output)
	}
	show("report", "app1", "app2")
	show("report", "--merge", "app1", "app2", "--out", "merged")
	show("check", redisURL)
	traffic := lab.Traffic()
	fmt.Printf("\nNetwork: %d packets, %d lost. The switch was busy for %.0f%% of the time.\n", traffic.Frames, traffic.Lost+traffic.Full, 100*traffic.Busy)
	if *out != "" {
		fmt.Printf("The results of app1, app2 and both (merged) are in %s\n", *out)
	}

	var acknowledged int64
	for _, app := range apps {
		s := read(t, filepath.Join(dir, app))
		acknowledged += s.Check.Acknowledged
		require.NotZero(t, s.Check.Acknowledged)
	}
	merged := read(t, filepath.Join(dir, "merged"))
	require.Equal(t, 2, merged.Run.AppHosts)
	require.Equal(t, acknowledged, merged.Check.Acknowledged)
	require.Equal(t, acknowledged, *merged.Check.Terminal, "both app hosts have one store")
	require.Zero(t, *merged.Check.Lost)
	require.Zero(t, merged.Load.Errors)
	require.True(t, merged.Run.SharedHost, "whatever the addresses are")
	// The request and three writes, each there and back.
	require.GreaterOrEqual(t, *merged.LatencyMS.P50, 0.99*8*float64(link.Delay)/float64(time.Millisecond))
}

func read(t *testing.T, dir string) result.Summary {
	t.Helper()
	r, err := result.ReadResult(dir)
	require.NoError(t, err)
	return *r.Run
}

// The commands of the published report on sagas in Redis, with our port and path: a bench
// server on each app host, and the load there, too.
func TestTwoAppHosts_RunTheCommandsOfThePublishedReport(t *testing.T) {
	t.Parallel()
	lab := newLab(t, netlab.Link{})
	shell := func(script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = root
		// Like all programs that tests build: see Makefile.
		cmd.Env = append(os.Environ(), "SAGABENCH_REDIS_URL="+redisURL, "GOFLAGS="+os.Getenv("GOFLAGS")+" -pgo=off")
		return cmd
	}
	for _, app := range apps {
		_, err := start(soon(t), lab.Host(app), shell("LOG_LEVEL=warn go run bench/main.go redis"), "serving on http://127.0.0.1:8080\n")
		require.NoError(t, err)
	}
	dir := t.TempDir()
	onBoth := func(script string) (logs []string) {
		var both []*program
		for _, app := range apps {
			p, err := start(soon(t), lab.Host(app), shell("app="+filepath.Join(dir, app)+"; "+script), "")
			require.NoError(t, err)
			both = append(both, p)
		}
		for _, p := range both {
			require.NoError(t, <-p.ended, "%s", &p.log)
			logs = append(logs, p.log.String())
		}
		return logs
	}
	for _, log := range onBoth("ab -n 1000 -c 10 http://127.0.0.1:8080/bench/saga") {
		require.Regexp(t, `Complete requests: +1000\nFailed requests: +0\n`, log)
		require.NotContains(t, log, "Non-2xx")
	}
	onBoth(`printf 'GET %s\n' "http://127.0.0.1:8080/bench/saga" | go tool vegeta attack -rate=0 -max-workers=10 -workers=10 -connections=10 -duration=500ms >$app.bin`)
	report := bench(t, "report", "app1.bin", "app2.bin")
	report.Dir = dir
	output, code := run(t, lab.Host("load"), report)
	require.Zero(t, code, output)
	require.Contains(t, output, "2 results side by side")
	check, code := run(t, lab.Host("load"), bench(t, "check", redisURL))
	require.Zero(t, code, check)
}
