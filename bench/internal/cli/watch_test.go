package cli

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Prometheus sees a run while it is under way, and not after it.
func TestRun_ServesTheMetricsOfItsLoad(t *testing.T) {
	t.Parallel()
	cmd := newProgram(t).command("run", "pebble", "--duration", "1h", "--warmup", "0s", "--metrics", "127.0.0.1:0")
	stderr := newLines()
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	line, err := stderr.find(soon(t), "metrics of the load: ")
	require.NoError(t, err)
	_, url, _ := strings.Cut(line, ": ")
	answered := regexp.MustCompile(`(?m)^sagabench_load_latency_seconds_count [1-9]`)
	require.Eventually(t, func() bool {
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return answered.Match(text)
	}, patience, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait(), "it was interrupted")
	_, err = http.Get(url)
	require.Error(t, err)
}
