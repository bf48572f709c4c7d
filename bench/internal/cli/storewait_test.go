package cli

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// status asks a server that may not listen yet.
func status(url string) int {
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

func TestCoordinator_WaitsForItsStore(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	require.NoError(t, redis.Kill())
	listen := freeAddress(t)
	p := newProgram(t)
	cmd := p.command("coordinator", redis.URL(), "--listen", listen)
	out, err := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = out, err
	require.NoError(t, cmd.Start())
	s := &running{program: p, cmd: cmd, url: "http://" + listen, out: out, err: err}
	t.Cleanup(s.stop)
	require.Eventually(t, func() bool { return status(s.url+"/livez") == http.StatusOK }, patience, 20*time.Millisecond, err)
	for _, path := range []string{"/readyz", "/healthz", "/api/dtmsvr/all", "/ui"} {
		require.Equal(t, http.StatusServiceUnavailable, status(s.url+path), path)
	}
	require.NotContains(t, out.String(), servingPrefix)
	require.NoError(t, redis.Restart(t.Context()))
	_, found := out.find(soon(t), servingPrefix)
	require.NoError(t, found, err)
	require.Eventually(t, func() bool { return status(s.url+"/readyz") == http.StatusOK }, patience, 20*time.Millisecond)
	require.Contains(t, err.String(), "the store does not answer; waiting for it")
	require.Contains(t, err.String(), "the store answers")
}

func TestCoordinator_GivesItsStoreUp(t *testing.T) {
	t.Parallel()
	got := newProgram(t, "SAGABENCH_COORDINATOR_STORE_WAIT=1s").run("coordinator", "redis://127.0.0.1:1", "--listen", "127.0.0.1:0")
	require.Equal(t, exitError, got.code)
	require.Contains(t, lastLine(got.stderr), "coordinator.store_wait: no store within 1s: redis at 127.0.0.1:1")
}

// A store that comes back and can never be used is given up at once, by its own fault.
func TestCoordinator_StoreItWaitsForIsNone(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"maxmemory-policy": "allkeys-lru"}})
	require.NoError(t, redis.Kill())
	cmd := newProgram(t).command("coordinator", redis.URL(), "--listen", "127.0.0.1:0")
	stderr := newLines()
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	_, found := stderr.find(soon(t), "time=")
	require.NoError(t, found)
	require.NoError(t, redis.Restart(t.Context()))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitError, cmd.ProcessState.ExitCode())
	require.Contains(t, lastLine(stderr.String()), "bench: redis at "+redis.Addr())
	require.Contains(t, lastLine(stderr.String()), "maxmemory-policy is allkeys-lru")
}

func TestCoordinator_ToldToStopWhileItWaits(t *testing.T) {
	t.Parallel()
	cmd := newProgram(t).command("coordinator", "redis://127.0.0.1:1", "--listen", "127.0.0.1:0")
	err := newLines()
	cmd.Stderr = err
	require.NoError(t, cmd.Start())
	_, found := err.find(soon(t), "time=")
	require.NoError(t, found)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), err)
}
