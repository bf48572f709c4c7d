package faults

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/audit"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/redisnodes"
)

const (
	quiet    = 3 * time.Second // no request must have failed for so long: then the errors have ended
	patience = 2 * time.Minute // with a busy machine
)

// runLosesAMaster loses a master at D3, and moves slots, in the middle of bench run. What the
// master acknowledged last did not reach its replica.
func runLosesAMaster(t *testing.T, cluster *redisnodes.Cluster) {
	dir := filepath.Join(t.TempDir(), "result")
	run := startRun(t, cluster.URLs()[1], "--branches", "http", "--fail", "0.1", "--rate", "50/s", "--out", dir)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(run.Log())
		}
	})
	answered := func(more float64) {
		now := run.counted(t, "sagabench_load_requests_total")
		require.Eventually(t, func() bool { return run.counted(t, "sagabench_load_requests_total") > now+more }, patience, 10*time.Millisecond)
	}
	answered(50)
	lost := loseMaster(t, cluster,
		func(master *lab.Server) error {
			if err := cluster.CutOff(t.Context(), master); err != nil {
				return err
			}
			answered(30)
			return master.Kill()
		},
		func(master *lab.Server) error {
			return errors.Join(cluster.Reconnect(t.Context()), master.Restart(t.Context()))
		})
	from, err := cluster.Master(t.Context(), 0)
	require.NoError(t, err)
	slots, err := cluster.Slots(t.Context(), from)
	require.NoError(t, err)
	require.NoError(t, cluster.MoveSlots(t.Context(), from, cluster.Nodes()[2], slots[:2000]...))
	failed, since := -1.0, time.Now()
	require.Eventually(t, func() bool {
		if now := run.counted(t, "sagabench_load_errors_total"); now > failed {
			failed, since = now, time.Now()
		}
		return time.Since(since) > quiet
	}, patience, 100*time.Millisecond, "requests still fail")
	stopped := time.Now()
	require.NoError(t, run.Signal(syscall.SIGINT))
	require.ErrorContains(t, run.Wait(), "exit status 2", "a result that is not valid")

	var s result.Summary
	text, err := os.ReadFile(filepath.Join(dir, result.FileSummary))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &s))
	require.Equal(t, "D3", s.Run.Store.Durability)
	require.Positive(t, s.Load.Errors)
	require.Zero(t, *s.Check.BothOutcomes+*s.Check.Uncompensated)
	require.True(t, slices.ContainsFunc(s.Timeline, func(second result.Sample) bool { return *second.ErrorsPerS > 0 }))
	requests, err := load.ReadVegeta(filepath.Join(dir, result.FileResults))
	require.NoError(t, err)
	after := 0
	for _, second := range requests.Intervals {
		if second.Start.After(since) && second.Start.Add(second.Length).Before(stopped) {
			require.Zero(t, second.Errors)
			after++
		}
	}
	require.Positive(t, after)

	acknowledged := make(map[string]period)
	require.NoError(t, load.Acknowledged(dir, func(ack load.Acknowledgement) error {
		acknowledged[ack.GID] = period{ack.Sent, ack.Answered}
		return nil
	}))
	require.EqualValues(t, len(acknowledged), s.Check.Acknowledged)
	if *s.Check.Lost > 0 {
		require.Contains(t, run.Log(), " LOST\n")
		require.Contains(t, strings.Join(s.Validity.Because, "\n"), "sagas lost; a replica that takes over lacks what had not reached it")
	}
	require.Contains(t, strings.Join(s.Validity.Because, "\n"), "requests failed")
	require.Contains(t, strings.Join(s.Validity.Warnings, "\n"), "the server was restarted or replaced during the run")
	t.Logf("%d sagas acknowledged, %d lost, %d with lost writes", s.Check.Acknowledged, *s.Check.Lost, s.Check.LostWrites)
	gids := regexp.MustCompile(`saga (\S+): acknowledged as`).FindAllStringSubmatch(strings.Join(s.Validity.Because, "\n"), -1)
	require.Len(t, gids, min(int(*s.Check.Lost), audit.MaxFindings))
	for _, gid := range gids {
		require.True(t, slices.ContainsFunc(lost.losing, acknowledged[gid[1]].overlaps), "%s: acknowledged in %v, lost may be %v", gid[1], acknowledged[gid[1]], lost.losing)
	}
}

// benchRun is a process that runs bench run.
type benchRun struct {
	*lab.Process
	metrics string // URL
}

// startRun starts bench run on a store, and waits until it measures.
func startRun(t *testing.T, store string, args ...string) (r benchRun) {
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.Process, err = lab.StartProcess(ctx, lab.ProcessConfig{
		Path: exe,
		Args: append([]string{"run", store, "--warmup", "0s", "--duration", "1h", "--metrics", "127.0.0.1:0"}, args...),
		Env:  slices.Concat(os.Environ(), []string{asProgram + "=1"}, settings),
		Ready: func(_ context.Context, p *lab.Process) error {
			_, after, _ := strings.Cut(p.Log(), "metrics of the load: ")
			r.metrics, _, _ = strings.Cut(after, "\n")
			if !strings.Contains(p.Log(), "measuring") {
				return errors.New("it does not measure yet")
			}
			return nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(r.Kill)
	return r
}

// counted returns the sum of a metric over its labels.
func (r benchRun) counted(t *testing.T, metric string) (sum float64) {
	response, err := http.Get(r.metrics)
	require.NoError(t, err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	for _, m := range families[metric].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}
