package load

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/store"
)

// serverVariable makes this test binary the server of BenchmarkRun.
const serverVariable = "SAGABENCH_TRIVIAL_SERVER"

// BenchmarkRun gives the CPU that one request costs the load generator, in µs,
// and the medians of its latencies: two seconds against a server that does
// nothing, in another process so that its CPU is not counted.
func BenchmarkRun(b *testing.B) {
	if os.Getenv(serverVariable) != "" {
		serveTrivially(b)
		return
	}
	server := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkRun$", "-test.benchtime=1x")
	server.Env = append(os.Environ(), serverVariable+"=1")
	stdin, err := server.StdinPipe()
	require.NoError(b, err)
	stderr, err := server.StderrPipe()
	require.NoError(b, err)
	require.NoError(b, server.Start())
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = server.Wait()
	})
	base, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(b, err)

	for _, rate := range []float64{0, 1000, 5000} {
		name := "closed"
		if rate > 0 {
			name = fmt.Sprintf("open-%v/s", rate)
		}
		b.Run(name, func(b *testing.B) {
			cfg := Default()
			cfg.Targets = []Target{{URL: strings.TrimSpace(base) + "/bench/saga?steps=2&branches=empty"}}
			if rate > 0 {
				cfg.Rate = Constant(rate)
			}
			cfg.Duration, cfg.Warmup = 2*time.Second, 200*time.Millisecond
			cfg.Dir = b.TempDir()
			var requests int64
			var cpu time.Duration
			var res Result
			for b.Loop() {
				before := cpuTime(b)
				var err error
				res, err = Run(b.Context(), cfg)
				require.NoError(b, err)
				require.Zero(b, res.Errors)
				cpu += cpuTime(b) - before
				requests += res.Acknowledged // the warm-up costs as much
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(requests), "µs-CPU/request")
			b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
			b.ReportMetric(float64(res.Latency.ValueAtQuantile(50)), "p50-µs")
			b.ReportMetric(float64(res.Service.ValueAtQuantile(50)), "service-p50-µs")
		})
	}
}

func serveTrivially(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var n atomic.Int64
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"dtm_result":"SUCCESS","gid":"%020d"}`, n.Add(1))
	})}
	go func() { _ = server.Serve(listener) }()
	fmt.Fprintf(os.Stderr, "http://%s\n", listener.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the parent ends
	_ = server.Close()
}

func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkRecorder gives what counting and recording one result costs the goroutine that
// takes them.
func BenchmarkRecorder(b *testing.B) {
	for _, arrival := range []Arrival{ArrivalConstant, ArrivalPoisson} {
		b.Run(string(arrival), func(b *testing.B) {
			began := time.Now()
			s := Config{Arrival: arrival, Seed: 1, Rate: Constant(MaxRate), Duration: 24 * time.Hour}.schedule()
			m := newRecorder(Default(), began, s)
			due := s.arrivals()
			r := vegeta.Result{Latency: time.Millisecond}
			for b.Loop() {
				r.Timestamp = began.Add(due.due(r.Seq))
				m.add(&r, m.due(&r), s.planned, store.StatusSucceeded, "")
				r.Seq++
			}
		})
	}
}
