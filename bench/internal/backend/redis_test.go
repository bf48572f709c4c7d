package backend

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
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

func config(server Server) sample.Config {
	cfg := sample.Default()
	cfg.OpenStore = Sampler(server)
	return cfg
}

// opened samples a server that the test opens itself.
func opened(t *testing.T, server Server) (store sample.Store, cfg sample.Config) {
	t.Helper()
	store, err := Sampler(server)(t.Context())
	require.NoError(t, err)
	cfg = sample.Default()
	cfg.OpenStore = func(context.Context) (sample.Store, error) { return store, nil }
	return store, cfg
}

func begin(t *testing.T, cfg sample.Config) *sample.Sampler {
	t.Helper()
	s, err := sample.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Begin(t.Context()))
	return s
}

func end(t *testing.T, s *sample.Sampler) sample.Usage {
	t.Helper()
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	require.Empty(t, u.Failures)
	return u
}

func TestUsage_RedisCostsAreThoseOfTheClients(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, server *lab.Server, client *redis.Client) {
		cfg := config(redisAt(server))
		ctx := t.Context()
		sha, err := client.ScriptLoad(ctx, script).Result()
		require.NoError(t, err)

		const sagas = 2000
		s := begin(t, cfg)
		for i := range sagas {
			require.NoError(t, client.EvalSha(ctx, sha, []string{fmt.Sprintf("key:%06d", i)}).Err())
		}
		require.NoError(t, client.LPush(ctx, "due", "a").Err())
		u := end(t, s)

		require.EqualValues(t, sagas+1, *u.Total.StoreCalls, "what a script calls is no call of a client")
		// EVALSHA with its hash, one key and no argument, and an LPUSH.
		command := int64(len("*4\r\n$7\r\nevalsha\r\n$40\r\n\r\n$1\r\n1\r\n$10\r\nkey:000000\r\n") + 40)
		require.EqualValues(t, sagas*command+int64(len("*3\r\n$5\r\nlpush\r\n$3\r\ndue\r\n$1\r\na\r\n")), *u.Total.StoreBytesIn)
		require.EqualValues(t, sagas*(len("$100\r\n\r\n")+100)+len(":1\r\n"), *u.Total.StoreBytesOut)

		cost := u.PerSaga(sagas)
		require.Positive(t, *cost.StoreCPUUS)
		require.Less(t, *cost.StoreCPUUS, 50_000.0, "of a saga, in µs")
		require.InDelta(t, 200, *cost.StoreMemoryBytes, 80, "key, value and their entry")
		require.InDelta(t, 1, *cost.StoreCalls, 0.001)
		require.Nil(t, cost.StoreRoundTrips)
		require.Nil(t, cost.StoreFsyncs)
		require.Nil(t, cost.AppCPUUS)
		require.Positive(t, *cost.LoadCPUUS)
	})
}

func TestUsage_SamplerAloneCostsRedisNothing(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, server *lab.Server, _ *redis.Client) {
		store, cfg := opened(t, redisAt(server))
		cfg.Every = 5 * time.Millisecond
		s := begin(t, cfg)
		require.Eventually(t, func() bool { return store.(*redisSampler).redis.traffic.got.Load() > 10_000 }, time.Minute, time.Millisecond)
		u := end(t, s)
		require.Zero(t, *u.Total.StoreBytesIn)
		require.Zero(t, *u.Total.StoreBytesOut)
		require.Zero(t, *u.Total.StoreCalls)
		require.InDelta(t, 0, *u.Total.StoreMemoryBytes, 128<<10, "buffers of connections at most")
	})
}

func TestUsage_MemoryIsUnknownWhenKeysWentAway(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	cfg := config(redisAt(server))
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "a", "b", time.Millisecond).Err())
	s := begin(t, cfg)
	require.Eventually(t, func() bool { return client.Exists(ctx, "a").Val() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, s.End(ctx))
	u := s.Usage()
	require.Nil(t, u.Total.StoreMemoryBytes)
	require.Len(t, u.Failures, 1)
	require.Contains(t, u.Failures[0], "dropped meanwhile")
	require.NotNil(t, u.Total.StoreBytesIn)
}

func TestUsage_RestartedRedisIsNotMeasured(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := config(redisAt(server))
	s := begin(t, cfg)
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	// The connection was lost with the server: either it is gone still, or the
	// server behind the new one is another.
	require.NotEmpty(t, u.Failures)
	require.Nil(t, u.Total.StoreCPUUS)
	require.Nil(t, u.Total.StoreBytesIn)
	require.Equal(t, result.Cost{LoadCPUUS: u.PerSaga(1).LoadCPUUS}, u.PerSaga(1))
}

func TestSampler_SaysWhatIsNotThere(t *testing.T) {
	t.Parallel()
	nowhere := func(driver, url string) Server { return Server{Driver: driver, URL: url} }
	for name, server := range map[string]Server{
		"measure redis: INFO all: dial tcp 127.0.0.1:1":       nowhere(open.Redis, "redis://127.0.0.1:1"),
		"measure redis: the URL is not one of a Redis (redi":  nowhere(open.Redis, "redis://:secret@127.0.0.1:bad"),
		"measure mysql: dial tcp 127.0.0.1:1":                 nowhere(open.MySQL, "mysql://root:secret@127.0.0.1:1/"),
		"measure mysql: the URL is not one of a MySQL (mysql": nowhere(open.MySQL, "mysql://root:secret@127.0.0.1:bad/"),
		"127.0.0.1:1": nowhere(open.Postgres, "postgres://postgres:secret@127.0.0.1:1/postgres"),
		"measure postgres: the URL is not one of a PostgreSQ": nowhere(open.Postgres, "postgres://postgres:secret@127.0.0.1:bad/postgres"),
	} {
		_, err := Sampler(server)(t.Context())
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestCommandsIn_FindsCallsOfAllKinds(t *testing.T) {
	t.Parallel()
	got := commandsIn(`local call = redis.call
call('ZADD', KEYS[2], 1, 'x')
redis.pcall( "setrange", KEYS[1], 0, call("GETRANGE", KEYS[1], 0, 1))`)
	require.Equal(t, []string{"zadd", "setrange", "getrange"}, got)
}

func TestClientCalls_LeavesOutWhatScriptsCall(t *testing.T) {
	t.Parallel()
	calls := func(n string) string { return "calls=" + n + ",usec=1" }
	n, err := clientCalls(map[string]string{
		"cmdstat_evalsha": calls("2"), "cmdstat_get": calls("9"), "cmdstat_config|get": calls("3"), "cmdstat_info": calls("7"),
		"cmdstat_hello": calls("1"), "cmdstat_set|x": calls("5"), "used_memory": "1",
	})
	require.NoError(t, err)
	require.EqualValues(t, 6, n)
}

func TestAddTo_MemoryMayShrink_UnlessItGrowsByExtents(t *testing.T) {
	t.Parallel()
	at := func(bytes, extent float64) *counters {
		return &counters{values: map[string]float64{keyMemory: bytes}, extent: extent}
	}
	var u sample.Usage
	(&sampler{before: at(3000, 0), after: at(1000, 0)}).AddTo(&u)
	require.Empty(t, u.Failures)
	require.InDelta(t, -2000, *u.Total.StoreMemoryBytes, 0)
	u = sample.Usage{}
	(&sampler{before: at(3000, mysqlExtent), after: at(1000, mysqlExtent)}).AddTo(&u)
	require.Nil(t, u.Total.StoreMemoryBytes)
	require.Contains(t, u.Failures[0], "too little to tell")
}
