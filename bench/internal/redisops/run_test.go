package redisops

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
)

// rueidis closes the connections to nodes that it no longer uses after 5 s, also of a client
// that was closed meanwhile.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// short measures for a moment.
func short(servers ...*lab.Server) Config {
	cfg := Default()
	cfg.URLs = nil
	for _, s := range servers {
		cfg.URLs, cfg.PIDs = append(cfg.URLs, s.URL()), append(cfg.PIDs, s.PID())
	}
	cfg.Clients, cfg.Payload = 8, 100
	cfg.Duration, cfg.Warmup = 150*time.Millisecond, 50*time.Millisecond
	return cfg
}

func connect(t *testing.T, address string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(address)
	require.NoError(t, err)
	c := redis.NewClient(o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// calls returns how often the servers ran a command.
func calls(t *testing.T, command string, urls ...string) (sum int64) {
	t.Helper()
	for _, address := range urls {
		text, err := connect(t, address).Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
				var n int64
				_, err := fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &n)
				require.NoError(t, err)
				sum += n
			}
		}
	}
	return sum
}

func keysLeft(t *testing.T, urls ...string) (sum int64) {
	t.Helper()
	for _, address := range urls {
		sum += connect(t, address).DBSize(t.Context()).Val()
	}
	return sum
}

// requireSameBytes compares what the connections and the servers counted.
func requireSameBytes(t *testing.T, r Result) {
	t.Helper()
	in, out := r.Servers.StoreBytesIn, r.Servers.StoreBytesOut
	require.NotNil(t, in)
	ops := float64(r.Operations)
	require.InDelta(t, *in/ops, *r.BytesSent, 0.01, "bytes sent per operation")
	require.InDelta(t, *out/ops, *r.BytesReceived, 0.01, "bytes received per operation")
}

func TestRun_CountsWhatTheServerCounts_WithEachClient(t *testing.T) {
	t.Parallel()
	for _, name := range Clients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{})
			cfg := short(server)
			cfg.Client, cfg.Warmup = name, 0 // so that the server has counted only what is in the result
			if pipelines(name) {
				cfg.Pipeline = 16
			}
			r, err := Run(t.Context(), cfg)
			require.NoError(t, err)
			require.Zero(t, r.Errors, r.FirstError)
			require.Empty(t, r.Failures)
			require.Zero(t, keysLeft(t, server.URL()))
			require.Equal(t, store.D0, r.Store.Durability)
			require.True(t, r.Validity().Valid)

			m := r.Metrics()
			require.Contains(t, m, "server_cpu_us") // the kernel may count in ticks
			require.Contains(t, m, "client_cpu_us")
			require.Positive(t, m["p50_ms"])
			require.GreaterOrEqual(t, m["max_ms"], m["p50_ms"])
			require.NotContains(t, m, "busiest_cpu_us")
			if name == ClientRedisBenchmark {
				require.NotContains(t, m, "round_trips")
				return
			}
			require.Equal(t, calls(t, "get", server.URL()), r.Operations)
			require.Equal(t, r.Requests*int64(cfg.Pipeline), r.Operations)

			cfg.Warmup = 50 * time.Millisecond // so that connections are open
			r, err = Run(t.Context(), cfg)
			require.NoError(t, err)
			requireSameBytes(t, r)
			require.LessOrEqual(t, *r.RoundTrips, 1.0)
			switch name {
			case clientGoRedis, clientRueidisPerCall:
				require.Equal(t, 1.0, *r.RoundTrips)
			case clientGoRedisPipeline, clientRueidisPipeline:
				require.Equal(t, 1.0/16, *r.RoundTrips)
			}
		})
	}
}

func TestRun_MeasuresEachOperation_WithBothLibraries(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	commands := map[string]string{"EVAL10": "eval", "EVALSHA10": "evalsha"}
	for _, name := range Operations() {
		for _, client := range []string{clientGoRedis, clientRueidis, ClientRedisBenchmark} {
			cfg := short(server)
			cfg.Operation, cfg.Client, cfg.Warmup = name, client, 0
			command := commands[name]
			if command == "" {
				command = strings.ToLower(name)
			}
			require.NoError(t, connect(t, server.URL()).ConfigResetStat(t.Context()).Err())
			r, err := Run(t.Context(), cfg)
			require.NoError(t, err)
			require.Zero(t, r.Errors, "%s: %s", name, r.FirstError)
			if client != ClientRedisBenchmark && name != "SET" { // which fills, too
				require.Equal(t, calls(t, command, server.URL()), r.Operations, "%s with %s", name, client)
			}
			require.Zero(t, keysLeft(t, server.URL()), "%s with %s", name, client)
		}
	}
}

func TestRun_MeasuresACluster_OnEveryBinary(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{Binary: binary}})
			urls := cluster.URLs()
			clients := []string{clientGoRedisPipeline, clientRueidis}
			if binary == lab.Redis.Binaries()[0] {
				clients = slices.DeleteFunc(Clients(), func(name string) bool { return name == ClientRedisBenchmark })
			}
			for _, name := range clients {
				cfg := short(cluster.Nodes()...)
				cfg.Client, cfg.ManyKeys, cfg.KeysPerRequest, cfg.Warmup, cfg.keys = name, true, 10, 0, 1000
				for _, address := range urls {
					require.NoError(t, connect(t, address).ConfigResetStat(t.Context()).Err())
				}
				r, err := Run(t.Context(), cfg)
				require.NoError(t, err)
				require.Zero(t, r.Errors, r.FirstError)
				require.GreaterOrEqual(t, *r.Resources.StoreCPUImbalance, 1.0)
				require.Equal(t, calls(t, "get", urls...), r.Operations, name)
				require.Equal(t, r.Operations, 10*r.Requests)
				m := r.Metrics()
				require.GreaterOrEqual(t, m["server_cpu_us"], m["busiest_cpu_us"])
				require.Contains(t, m, "busiest_cpu_us")
				require.Zero(t, keysLeft(t, urls...))
			}
		})
	}
}

func TestRedisBenchmark_SendsAsManyOperationsAsItIsAskedFor(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := short(server)
	cfg.Client, cfg.Pipeline, cfg.ManyKeys = ClientRedisBenchmark, 16, true
	target, err := parseTarget(cfg.URLs)
	require.NoError(t, err)
	b := &bench{cfg: cfg, target: target, w: newWorkload(cfg, "test"), control: target.goRedis(nil, 1)}
	defer func() { require.NoError(t, b.close()) }()
	require.NoError(t, b.prepare(t.Context()))
	path, err := exec.LookPath(ClientRedisBenchmark)
	require.NoError(t, err)
	r, err := b.sendWithBenchmark(t.Context(), path, 32_000)
	require.NoError(t, err)
	require.Equal(t, int64(32_000), calls(t, "get", server.URL()))
	require.Equal(t, int64(32_000), r.Operations)
	require.Equal(t, int64(2000), r.Requests)
	info := connect(t, server.URL()).InfoMap(t.Context(), "stats").Val()["Stats"]
	require.Equal(t, "0", info["keyspace_misses"], "its random keys are ours")
}

func TestParseBenchmark_RefusesOtherOutput(t *testing.T) {
	t.Parallel()
	const names = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	var r Result
	require.NoError(t, parseBenchmark([]byte(names+`"EVAL return x","50000.00","0.3","0.1","0.2","0.4","0.5","0.9"`), 1000, &r))
	require.Equal(t, 20*time.Millisecond, r.Elapsed)
	require.Equal(t, 0.4, *r.Latency.P95)
	for _, text := range []string{"", `"SET","50000.00"`, names, names + `"SET","0","0","0","0","0","0","0"`, names + `"SET","many","0","0","0","0","0","0"`, strings.ReplaceAll(names, "p95", "p90") + `"SET","5","0","0","0","0","0","0"`} {
		require.Error(t, parseBenchmark([]byte(text), 1000, &r), text)
	}
}

// onceItReads does something in the middle of a measurement: when the server has run a GET.
func onceItReads(ctx context.Context, c *redis.Client, do func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		for {
			stats, err := c.InfoMap(ctx, "commandstats").Result()
			if err != nil {
				done <- err
				return
			}
			if stats["Commandstats"]["cmdstat_get"] != "" {
				done <- do()
				return
			}
		}
	}()
	return done
}

func TestRun_CountsErrors(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := short(server)
	cfg.Warmup, cfg.Duration = 0, 3*time.Second
	c := connect(t, server.URL())
	vanished := onceItReads(t.Context(), c, func() error { return c.FlushDB(t.Context()).Err() })
	r, err := Run(t.Context(), cfg)
	require.NoError(t, <-vanished)
	require.NoError(t, err)
	require.Positive(t, r.Operations)
	require.Positive(t, r.Errors)
	require.Contains(t, r.FirstError, "nil")
	require.False(t, r.Validity().Valid)
	require.Contains(t, r.Validity().Because[0], "operations failed: redis: nil")
	require.InDelta(t, float64(r.Errors)/float64(r.Errors+r.Operations), r.Metrics()["errors"], 1e-9)
}

func TestRun_ReportsWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	for want, change := range map[string]func(*Config){
		`operation: "DEL", want one of [SET GET `:                    func(c *Config) { c.Operation = "DEL" },
		`client: "jedis", want one of [go-redis `:                    func(c *Config) { c.Client = "jedis" },
		"clients: 0, must be 1 to 10000":                             func(c *Config) { c.Clients = 0 },
		"payload: 1048577, must be 0 to 1048576":                     func(c *Config) { c.Payload = 1<<20 + 1 },
		"keys_per_request: 3, must be 1, or even":                    func(c *Config) { c.KeysPerRequest, c.ManyKeys = 3, true },
		"keys_per_request: 2, must be 1, or even and with many keys": func(c *Config) { c.KeysPerRequest = 2 },
		"client go-redis has no pipeline":                            func(c *Config) { c.Pipeline = 16 },
		"LPOP needs one key":                                         func(c *Config) { c.Operation, c.ManyKeys = "LPOP", true },
		"duration: 1ms, at least 100ms":                              func(c *Config) { c.Duration = time.Millisecond },
		"warmup: -1ns, at least 0":                                   func(c *Config) { c.Warmup = -1 },
		"urls: there is none":                                        func(c *Config) { c.URLs = nil },
		"pids: 2 of 1 servers":                                       func(c *Config) { c.PIDs = []int{1, 2} },
		"urls: want redis://":                                        func(c *Config) { c.URLs = []string{"http://secret@host"} },
		"are not measured over TLS":                                  func(c *Config) { c.URLs = []string{"rediss://host"} },
		"redis-benchmark shows the server's password":                func(c *Config) { c.Client, c.PIDs = ClientRedisBenchmark, nil },
		"redis-benchmark measures one server":                        func(c *Config) { c.Client, c.KeysPerRequest, c.ManyKeys = ClientRedisBenchmark, 2, true },
		"connection refused":                                         func(c *Config) { c.URLs = []string{"redis://127.0.0.1:1"} },
	} {
		cfg := short(server)
		change(&cfg)
		_, err := Run(t.Context(), cfg)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
		password, _ := url.Parse(server.URL())
		secret, _ := password.User.Password()
		require.NotContains(t, err.Error(), secret)
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	for _, name := range []string{clientGoRedis, clientRueidis, ClientRedisBenchmark} {
		cfg := short(server)
		cfg.Client, cfg.Duration = name, time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		c := connect(t, server.URL())
		require.NoError(t, c.ConfigResetStat(ctx).Err())
		ended := onceItReads(t.Context(), c, func() error { cancel(); return nil })
		_, err := Run(ctx, cfg)
		require.NoError(t, <-ended)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, keysLeft(t, server.URL()), "it leaves nothing")
	}
}

func TestRun_LeavesNothing_WhenItCannotFill(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"maxmemory": "8mb"}})
	cfg := short(server)
	cfg.ManyKeys, cfg.Payload = true, 1000
	_, err := Run(t.Context(), cfg)
	require.ErrorContains(t, err, "fill: OOM")
	require.Zero(t, keysLeft(t, server.URL()))
}

func TestLoop_MeasuresTheWholeRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Clients, cfg.KeysPerRequest, cfg.ManyKeys = 2, 4, true
		l := newLoop(cfg, newWorkload(cfg, "test"), slowClient{})
		r := l.run(t.Context(), 100*time.Millisecond)
		require.EqualValues(t, 2*5, r.Requests)
		require.Equal(t, r.Operations, 4*r.Requests)
		require.InDelta(t, 20, *r.Latency.Mean, 0.1)
	})
}

// slowClient answers a request after 20 ms.
type slowClient struct{}

func (slowClient) do(context.Context, []string) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return 0, nil
}
func (slowClient) close() error { return nil }

func TestOperations_ListsAll(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, slices.Collect(maps.Keys(operations)), Operations())
}

func TestWorkload_DrawsKeys(t *testing.T) {
	t.Parallel()
	cfg := Default()
	require.Equal(t, []string{"p:000000000000"}, newWorkload(cfg, "p").request(nil, nil))

	cfg.ManyKeys, cfg.Pipeline = true, 2
	w := newWorkload(cfg, "p")
	require.Len(t, w.keys(), 100_000)
	require.Equal(t, []string{"p:000000000007", "p:000000000007"}, w.request(nil, func(int) int { return 7 }))

	cfg.KeysPerRequest, cfg.Pipeline = 4, 1
	w = newWorkload(cfg, "p")
	require.Equal(t, []string{"p:000000100000", "p:000000100001", "p:000000000007", "p:000000000007"}, w.request(nil, func(int) int { return 7 }))
}

// BenchmarkLoop shows the CPU of the measurement itself, per operation. The figure in the
// package comment rests on it.
func BenchmarkLoop(b *testing.B) {
	cfg := Default()
	cfg.ManyKeys = true
	l := newLoop(cfg, newWorkload(cfg, "test"), noClient{})
	before, err := readOwn(&wire{})
	require.NoError(b, err)
	r := l.run(b.Context(), time.Second)
	after, err := readOwn(&wire{})
	require.NoError(b, err)
	before.costs(after, &r)
	b.ReportMetric(*r.ClientCPUUS, "µs/op")
	b.ReportMetric(*r.ClientAllocs, "allocs/op")
}

type noClient struct{}

func (noClient) do(context.Context, []string) (int, error) { return 0, nil }
func (noClient) close() error                              { return nil }
