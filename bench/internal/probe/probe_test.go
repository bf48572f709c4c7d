package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store/open"
)

func TestMain(m *testing.M) {
	// Where there was no Redis, its client looks again a second after it was closed,
	// and only then ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// script is one of a store: it writes a key of about 100 bytes.
const script = `-- KEYS[1] a key
redis.call("SET", KEYS[1], string.rep('x', 100))
return redis.call('GET', KEYS[1])`

// eachRedis runs a test against every Redis there is.
func eachRedis(t *testing.T, test func(*testing.T, *lab.Server, *redis.Client)) {
	t.Helper()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary, Settings: map[string]string{"requirepass": "secret"}})
			opt, err := redis.ParseURL(server.URL())
			require.NoError(t, err)
			client := redis.NewClient(opt)
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			require.NoError(t, client.Ping(t.Context()).Err())
			test(t, server, client)
		})
	}
}

func redisAt(server *lab.Server) Server { return Server{Driver: open.Redis, URL: server.URL()} }

func begin(t *testing.T, cfg Config) *Sampler {
	t.Helper()
	s, err := New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Begin(t.Context()))
	return s
}

func end(t *testing.T, s *Sampler) Usage {
	t.Helper()
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	require.Empty(t, u.Failures)
	return u
}

func TestUsage_RedisCostsAreThoseOfTheClients(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, server *lab.Server, client *redis.Client) {
		cfg := Default()
		cfg.Store = redisAt(server)
		cfg.Store.Scripts = []string{script}
		ctx := t.Context()
		sha, err := client.ScriptLoad(ctx, script).Result()
		require.NoError(t, err)

		const sagas = 2000
		s := begin(t, cfg)
		for i := range sagas {
			require.NoError(t, client.EvalSha(ctx, sha, []string{fmt.Sprintf("key:%06d", i)}).Err())
		}
		require.NoError(t, client.ZAdd(ctx, "due", redis.Z{Score: 1, Member: "a"}).Err())
		u := end(t, s)

		require.EqualValues(t, sagas+1, *u.StoreCalls, "what a script calls is no call of a client")
		// EVALSHA with its hash, one key and no argument, and a ZADD.
		command := int64(len("*4\r\n$7\r\nevalsha\r\n$40\r\n\r\n$1\r\n1\r\n$10\r\nkey:000000\r\n") + 40)
		require.Equal(t, sagas*command+int64(len("*4\r\n$4\r\nzadd\r\n$3\r\ndue\r\n$1\r\n1\r\n$1\r\na\r\n")), *u.StoreBytesIn)
		require.EqualValues(t, sagas*(len("$100\r\n\r\n")+100)+len(":1\r\n"), *u.StoreBytesOut)

		cost := u.PerSaga(sagas)
		require.Positive(t, *cost.StoreCPUUS)
		require.Less(t, *cost.StoreCPUUS, 500.0)
		require.InDelta(t, 200, *cost.StoreMemoryBytes, 80, "key, value and their entry")
		require.InDelta(t, 1, *cost.StoreCalls, 0.001)
		require.Nil(t, cost.StoreRoundTrips)
		require.Nil(t, cost.StoreFsyncs)
		require.Nil(t, cost.AppCPUUS)
		require.Positive(t, *cost.LoadCPUUS)
	})
}

func TestUsage_ProbeAloneCostsRedisNothing(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, server *lab.Server, _ *redis.Client) {
		cfg := Default()
		cfg.Store = redisAt(server)
		cfg.Every = 5 * time.Millisecond
		s := begin(t, cfg)
		require.Eventually(t, func() bool { return s.store.(*redisServer).traffic.got.Load() > 10_000 }, 10*time.Second, time.Millisecond)
		u := end(t, s)
		require.Zero(t, *u.StoreBytesIn)
		require.Zero(t, *u.StoreBytesOut)
		require.Zero(t, *u.StoreCalls)
		require.InDelta(t, 0, *u.StoreMemory, 128<<10, "buffers of connections at most")
	})
}

func TestUsage_CallsAreUnknownWhenNobodySaysWhatScriptsCall(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	cfg := Default()
	cfg.Store = redisAt(server)
	s := begin(t, cfg)
	require.NoError(t, client.Eval(t.Context(), script, []string{"a"}).Err())
	require.Nil(t, end(t, s).StoreCalls)
}

func TestUsage_MemoryIsUnknownWhenKeysWentAway(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	cfg := Default()
	cfg.Store = redisAt(server)
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "a", "b", time.Millisecond).Err())
	s := begin(t, cfg)
	require.Eventually(t, func() bool { return client.Exists(ctx, "a").Val() == 0 }, 5*time.Second, time.Millisecond)
	require.NoError(t, s.End(ctx))
	u := s.Usage()
	require.Nil(t, u.StoreMemory)
	require.Len(t, u.Failures, 1)
	require.Contains(t, u.Failures[0], "dropped meanwhile")
	require.NotNil(t, u.StoreBytesIn)
}

func TestUsage_RestartedRedisIsNotMeasured(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := Default()
	cfg.Store = redisAt(server)
	s := begin(t, cfg)
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	// The connection was lost with the server: either it is gone still, or the
	// server behind the new one is another.
	require.NotEmpty(t, u.Failures)
	require.Nil(t, u.StoreCPU)
	require.Nil(t, u.StoreBytesIn)
	require.Equal(t, result.Cost{LoadCPUUS: u.PerSaga(1).LoadCPUUS}, u.PerSaga(1))
}

func TestNew_SaysWhatIsNotThere(t *testing.T) {
	t.Parallel()
	nowhere := func(driver, url string) Config {
		return Config{Store: Server{Driver: driver, URL: url}, Timeout: time.Second}
	}
	for name, cfg := range map[string]Config{
		"measure the app server: process 2147483647":          {AppPIDs: []int{2147483647}},
		"measure redis: INFO all: dial tcp 127.0.0.1:1":       nowhere(open.Redis, "redis://127.0.0.1:1"),
		"measure redis: the URL is not one of a Redis (redi":  nowhere(open.Redis, "redis://:secret@127.0.0.1:bad"),
		"measure mysql: dial tcp 127.0.0.1:1":                 nowhere(open.MySQL, "mysql://root:secret@127.0.0.1:1/"),
		"measure mysql: the URL is not one of a MySQL (mysql": nowhere(open.MySQL, "mysql://root:secret@127.0.0.1:bad/"),
		"127.0.0.1:1": nowhere(open.Postgres, "postgres://postgres:secret@127.0.0.1:1/postgres"),
		"measure postgres: the URL is not one of a PostgreSQ": nowhere(open.Postgres, "postgres://postgres:secret@127.0.0.1:bad/postgres"),
	} {
		_, err := New(t.Context(), cfg)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "secret")
	}
}

// busyVariable makes this test binary burn CPU until its input ends.
const busyVariable = "SAGABENCH_BURN_CPU"

func TestBurn_Helper(t *testing.T) {
	if os.Getenv(busyVariable) == "" {
		return // the process below, or nothing
	}
	var ended atomic.Bool
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	for !ended.Load() {
	}
}

func TestUsage_ProcessesAreMeasured(t *testing.T) {
	t.Parallel()
	app := exec.Command(os.Args[0], "-test.run=^TestBurn_Helper$")
	app.Env = append(os.Environ(), busyVariable+"=1")
	stdin, err := app.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, app.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = app.Wait()
	})
	cfg := Default()
	cfg.AppPIDs = []int{app.Process.Pid}
	cfg.Every = 20 * time.Millisecond
	s := begin(t, cfg)
	require.Eventually(t, func() bool {
		used, err := cpuSeconds(t.Context(), s.app)
		return err == nil && *used > *s.before.app+0.1
	}, 20*time.Second, 5*time.Millisecond)
	u := end(t, s)
	require.GreaterOrEqual(t, *u.AppCPU, 0.1)
	require.Less(t, *u.AppCPU, 2*u.Elapsed.Seconds())
	require.Greater(t, *u.HostBusy, 0.0)
	require.LessOrEqual(t, *u.HostBusy, *u.BusiestCore)
	require.NotEmpty(t, u.Timeline)
	last := u.Timeline[len(u.Timeline)-1]
	require.NotNil(t, last.AppCores)
	require.NotNil(t, last.LoadCores)
	require.Greater(t, *last.AppMemoryBytes, int64(1<<20))

	e := u.Evidence()
	require.NotEmpty(t, e.CPUs.Load)
	require.Equal(t, e.CPUs.Load, e.CPUs.App)
	require.Empty(t, e.CPUs.Store)
	require.InDelta(t, *u.AppCPU/u.Elapsed.Seconds(), *e.AppCores, 1e-9)
	require.Positive(t, e.LoadCoresUsable)
	require.False(t, e.StoreOneCore)
}

func TestUsage_ProcessThatEndedIsAFailure(t *testing.T) {
	t.Parallel()
	app := exec.Command("sleep", "60")
	require.NoError(t, app.Start())
	cfg := Default()
	cfg.AppPIDs = []int{app.Process.Pid}
	s := begin(t, cfg)
	require.NoError(t, app.Process.Kill())
	_ = app.Wait()
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	require.Len(t, u.Failures, 1)
	require.Contains(t, u.Failures[0], "the CPU of the app: process")
	require.Nil(t, u.AppCPU)
}

// metricsServer answers as an app server whose counters went up by n since the
// scrape before.
func metricsServer(t *testing.T, format string, steps ...float64) string {
	t.Helper()
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.ReplaceAll(format, "N", fmt.Sprint(steps[scrapes.Add(1)-1])))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const fullMetrics = `# HELP sagabench_store_round_trips_total Waits.
# TYPE sagabench_store_round_trips_total counter
sagabench_store_round_trips_total{shard="a"} N
sagabench_store_round_trips_total{shard="b"} N
# TYPE sagabench_store_fsyncs_total counter
sagabench_store_fsyncs_total N
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total N
# TYPE sagabench_saga_duration_seconds histogram
sagabench_saga_duration_seconds_bucket{le="+Inf"} 3
sagabench_saga_duration_seconds_sum 1
sagabench_saga_duration_seconds_count 3
# TYPE sagabench_store_call_duration_seconds histogram
sagabench_store_call_duration_seconds_bucket{le="+Inf"} 3
sagabench_store_call_duration_seconds_sum N
sagabench_store_call_duration_seconds_count 3
# TYPE sagabench_connections_kept_out_seconds_total counter
sagabench_connections_kept_out_seconds_total N
# TYPE sagabench_store_connections_max gauge
sagabench_store_connections_max 16
# TYPE sagabench_store_connection_wait_seconds_total counter
sagabench_store_connection_wait_seconds_total N
`

func TestUsage_MetricsOfAllAppServersAreAdded(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.AppMetrics = []string{metricsServer(t, fullMetrics, 10, 30), metricsServer(t, fullMetrics, 5, 6)}
	u := end(t, begin(t, cfg))
	require.InDelta(t, 42, *u.StoreRoundTrips, 1e-9)
	require.InDelta(t, 21, *u.StoreFsyncs, 1e-9)
	require.InDelta(t, 21, *u.AppCPU, 1e-9, "there is no process to ask")
	require.InDelta(t, 21, *u.StoreCallTime, 1e-9)
	require.InEpsilon(t, 21/u.Elapsed.Seconds(), *u.Evidence().StoreCallsInFlight, 1e-9)
	require.InDelta(t, 32, *u.Evidence().StoreConns, 1e-9)
	require.InEpsilon(t, 21/u.Elapsed.Seconds(), *u.Evidence().StoreConnWaits, 1e-9)
	require.InEpsilon(t, 21/u.Elapsed.Seconds(), *u.Evidence().AppAcceptWait, 1e-9)
	require.NotNil(t, u.Evidence().NetworkBytesPerS)
	require.Nil(t, u.Evidence().StoreLockWaits)
	require.Nil(t, u.StoreCPU)
	cost := u.PerSaga(1000)
	require.InDelta(t, 0.042, *cost.StoreRoundTrips, 1e-9)
	require.InDelta(t, 21_000, *cost.AppCPUUS, 1e-9)
}

func TestUsage_TimelineHasTheBatchesNowAndThen(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("name[]") == metricBatches {
			looks.Add(1)
		}
		n := looks.Load()
		fmt.Fprintf(w, "# TYPE %s histogram\n%s_sum %d\n%s_count %d\n", metricBatches, metricBatches, 100+12*n, metricBatches, 7+3*n)
	}))
	t.Cleanup(server.Close)
	cfg := Default()
	cfg.AppMetrics = []string{server.URL}
	cfg.Every, cfg.Timeout = 10*time.Millisecond, time.Minute
	s := begin(t, cfg)
	require.Eventually(t, func() bool { return looks.Load() >= 10 }, 20*time.Second, 5*time.Millisecond)
	line := end(t, s).Timeline
	require.GreaterOrEqual(t, len(line), 9*batchesEvery)
	known := 0
	for i, m := range line {
		if m.Batch == nil {
			continue
		}
		known++
		require.Zero(t, (i+1)%batchesEvery, i)
		require.InDelta(t, 4, *m.Batch, 1e-9, "12 changes by 3 calls")
	}
	require.Positive(t, known)
	require.Nil(t, batch(&appMetrics{}, &appMetrics{}))
}

func TestUsage_MetricThatOneServerLacksIsUnknown(t *testing.T) {
	t.Parallel()
	without := strings.ReplaceAll(fullMetrics, metricFsyncs, "sagabench_other_total")
	cfg := Default()
	cfg.AppMetrics = []string{metricsServer(t, without, 1, 2), metricsServer(t, fullMetrics, 1, 2)}
	u := end(t, begin(t, cfg))
	require.NotNil(t, u.StoreRoundTrips)
	require.Nil(t, u.StoreFsyncs)
	require.Nil(t, u.PerSaga(10).StoreFsyncs)
}

func TestUsage_CounterThatWentBackwardsIsUnknown(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.AppMetrics = []string{metricsServer(t, fullMetrics, 10, 3)}
	require.Nil(t, end(t, begin(t, cfg)).StoreRoundTrips)
}

func TestUsage_AppWithoutMetricsIsAFailure(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	cfg := Default()
	cfg.AppMetrics = []string{server.URL}
	s := begin(t, cfg)
	require.NoError(t, s.End(t.Context()))
	require.Contains(t, s.Usage().Failures[0], "404 Not Found")
}

func TestPerSaga_OfNoSagasNothingIsKnown(t *testing.T) {
	t.Parallel()
	require.Equal(t, result.Cost{}, end(t, begin(t, Default())).PerSaga(0))
}

func TestCommandsIn_FindsCallsOfAllKinds(t *testing.T) {
	t.Parallel()
	got := commandsIn(`local call = redis.call
call('ZADD', KEYS[2], 1, 'x')
redis.pcall( "setrange", KEYS[1], 0, call("GETRANGE", KEYS[1], 0, 1))`)
	require.Equal(t, []string{"zadd", "setrange", "getrange"}, got)
}

func TestClientCalls_SubcommandsBelongToTheirCommand(t *testing.T) {
	t.Parallel()
	after := map[string]int64{"evalsha": 2, "get": 9, "object|encoding": 4, "config|get": 3, "info": 7, "hello": 1}
	require.EqualValues(t, 6, *clientCalls(nil, after, []string{`redis.call('GET') redis.call('OBJECT', 'ENCODING')`}))
}

func TestEnvironment_DescribesThisMachine(t *testing.T) {
	t.Parallel()
	e := Environment(t.Context())
	require.NotEmpty(t, e.CPU)
	require.Positive(t, e.Cores)
	require.Greater(t, e.Memory, int64(1<<20))
	require.NotEmpty(t, e.Kernel)
	require.True(t, strings.HasPrefix(e.Go, "go1."))
	require.NotNil(t, e.Versions, "empty in a test's binary, which lists no modules")
}

func TestCommitByGit_OnlyInsideTheModule(t *testing.T) {
	t.Parallel()
	require.Nil(t, commitByGit(t.Context(), "example.com/another"))
	if commit := commitByGit(t.Context(), module); commit != nil { // a copy without .git has none
		require.Regexp(t, `^[0-9a-f]{40}(\+dirty)?$`, *commit)
	}
}
