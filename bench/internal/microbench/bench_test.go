package microbench

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/internal/race"
	"sagabench/lua"
)

// quick measures everything, with windows too short for usable prices.
func quick() Config {
	return Config{Window: time.Millisecond, DueIndexes: []int{400, 800}, FinishedSagas: 1000, Progress: silent}
}

// openBench opens a bench that has to leave the server as it was.
func openBench(t testing.TB, cfg Config, url string) *bench {
	b, err := open(context.WithoutCancel(t.Context()), cfg, url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	return b
}

func silent(Progress) {}

func connect(t *testing.T, server *lab.Server) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	t.Cleanup(func() { client.Close() })
	return client
}

func requireKeys(t *testing.T, server *lab.Server, want ...string) {
	t.Helper()
	keys, err := connect(t, server).Keys(context.WithoutCancel(t.Context()), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, want, keys)
}

// TestBench_PricesEverything runs on every version of Redis that there is a binary
// of.
func TestBench_PricesEverything(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary})
			require.NoError(t, connect(t, server).Set(t.Context(), "of-somebody-else", "x", 0).Err())
			t.Cleanup(func() { requireKeys(t, server, "of-somebody-else") })
			b := openBench(t, quick(), server.URL())
			require.NoError(t, b.round(t.Context(), silent))
			requireComplete(t, b)
		})
	}
}

// A node of a cluster takes calls for its own slots only.
func TestBench_OnANodeOfACluster_PricesEverything(t *testing.T) {
	t.Parallel()
	nodes := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1}).Nodes()
	t.Cleanup(func() { requireKeys(t, nodes[1]) })
	b := openBench(t, quick(), nodes[1].URL())
	require.NoError(t, b.round(t.Context(), silent))
	requireComplete(t, b)
	require.Equal(t, "yes", b.result().Server.Settings["cluster-enabled"])
	require.Contains(t, b.result().Label(), "a master of a cluster")

	_, err := open(t.Context(), quick(), nodes[4].URL())
	require.ErrorContains(t, err, "it is a node of a Redis Cluster that holds no slots: name a master")
}

func requireComplete(t *testing.T, b *bench) {
	t.Helper()
	r := b.result()
	for _, c := range b.cases {
		require.False(t, c.refused, c.name())
		require.Len(t, c.samples, 1, c.name())
	}
	for _, p := range r.Prices {
		require.Positive(t, p.CallsPerS.Median, p.name())
		require.Positive(t, p.BytesIn, p.name())
		require.Positive(t, p.BytesOut, p.name())
	}
	// A variant runs all commands of the whole script but the one that it leaves out.
	for _, c := range b.cases {
		if command, is := strings.CutPrefix(c.Variant, without); is {
			want := maps.Clone(r.price(c.Case, c.Shape).Inside)
			delete(want, strings.ToLower(command))
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(c.price().Inside)), c.name())
			for name := range want {
				require.InDelta(t, want[name].Calls, c.price().Inside[name].Calls, 0.01, "%s: %s", c.name(), name)
			}
		}
	}
	// 16 sagas of two steps in four due indexes.
	s := base.batch(16)
	for script, want := range map[string]map[string]float64{
		"save":       {"time": 1, "setnx": 16, "zadd": 1},
		"update":     {"getrange": 16, "setrange": 16},
		"complete":   {"time": 1, "getrange": 16, "setrange": 16, "pexpireat": 16, "zrem": 1},
		"reschedule": {"time": 1, "getrange": 16, "setrange": 16, "get": 16, "set": 16, "zadd": 1},
		"claim":      {"time": 1, "zscore": 16, "getrange": 16, "get": 16, "setrange": 16, "zadd": 16},
	} {
		p := r.price(script, s)
		require.NotNil(t, p, script)
		got := map[string]float64{}
		for command, i := range p.Inside {
			got[command] = i.Calls
		}
		require.Equal(t, 1.0, got["evalsha"], script)
		delete(got, "evalsha")
		require.Equal(t, want, got, script)
	}
	require.Len(t, r.Breakdowns, 10)
	for _, s := range r.Breakdowns {
		require.Equal(t, "cannot tell: 1 round, an interval needs 6", s.Costliest, s.Case)
		sum := 0.0
		for _, p := range s.Parts {
			sum += p.US.Median
			require.Equal(t, p.Cause == CauseCommand, strings.Contains(p.Line, ".lua:"))
		}
		require.InDelta(t, s.TotalUS.Median, sum, 1e-6, s.Case)
	}
	require.Len(t, r.Ceilings, len(batches)*len(pipelines)+len(detailedBatches)*(len(steps)-1))
	require.Len(t, r.Baselines, len(pipelines))
	for _, c := range r.Baselines {
		require.Greater(t, c.BytesIn, 4000.0)
		require.Len(t, c.Ratios, len(batches))
	}
}

func TestBench_Interrupted_KeepsWhatItHas(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	t.Cleanup(func() { requireKeys(t, server) })
	ctx, cancel := context.WithCancel(t.Context())
	b := openBench(t, quick(), server.URL())
	require.ErrorIs(t, b.round(ctx, func(p Progress) {
		if p.Done == 4 {
			cancel()
		}
	}), context.Canceled)
	require.Len(t, b.result().Prices, 5, "the window under way is finished")
}

// Rounds are interleaved, every other time in inverted order.
func TestRun_SeveralServers(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Binaries = []string{"redis-server", "redis-server"}
	cfg.Duration = time.Millisecond
	var rounds []int
	cfg.Progress = func(p Progress) {
		if p.Round > 0 && p.Done == 0 {
			rounds = append(rounds, p.Round)
			require.Equal(t, 2*time.Millisecond, p.Planned)
		}
	}
	s, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.True(t, s.Validity.Valid)
	require.True(t, s.Run.SharedHost)
	require.Len(t, s.Lua.Servers, 2)
	require.Equal(t, []int{1, 1}, rounds)
}

// A user of a server that is somebody else's may do little, and CONFIG least.
func TestBench_WithoutRights_SaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"user": "bench on >word ~b*:* -@all +ping +select +info +time +script|load +evalsha +get +set +setnx +del" +
			" +getrange +setrange +pexpire +pexpireat +zadd +zrem +zscore",
	}})
	t.Cleanup(func() { requireKeys(t, server) })
	b := openBench(t, quick(), "redis://bench:word@"+server.Addr())
	require.NoError(t, b.round(t.Context(), silent))
	r := b.result()
	require.Empty(t, r.Server.Settings)
	require.Len(t, r.Breakdowns, 10, "what it is about was measured")
	require.Empty(t, r.Baselines)
	for _, want := range []string{"settings: CONFIG: NOPERM", "baseline branch: NOPERM"} {
		require.Contains(t, lines(r.NotMeasured), want)
	}
}

func TestOpen_SaysInOneLineWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"requirepass": "letmein"}})
	for url, says := range map[string]string{
		"redis://127.0.0.1:1":             "127.0.0.1:1",
		"redis://" + server.Addr():        "NOAUTH",
		"redis://:wrong@" + server.Addr(): "WRONGPASS",
		"://letmein":                      "url",
	} {
		_, err := open(t.Context(), quick(), url)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "letmein")
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestBench_NoRoomForALargeIndex(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"maxmemory": "16mb"}})
	cfg := quick()
	cfg.DueIndexes = []int{400, 10_000_000}
	b := openBench(t, cfg, server.URL())
	require.NoError(t, b.round(t.Context(), silent))
	sizes := map[int]bool{}
	for _, p := range b.result().Prices {
		sizes[p.DueIndex] = true
	}
	require.Equal(t, []int{0, 400}, slices.Sorted(maps.Keys(sizes)))
	require.Contains(t, b.result().NotMeasured[0], "due index of 10000000: needs maxmemory")
}

func TestBench_AgainstOtherScripts(t *testing.T) {
	t.Parallel()
	others := slices.Clone(lua.All())
	for i, s := range others { // the same, and another script to the server
		others[i] = newScript(s.Name, s.Source+"-- another\n")
	}
	others[1] = newScript("update", "return redis.error_reply('ERR broken')")
	cfg := quick()
	cfg.Against = others
	b := openBench(t, cfg, labtest.Start(t, lab.Redis, lab.Config{}).URL())
	for range 4 {
		require.NoError(t, b.round(t.Context(), silent))
	}
	r := b.result()
	require.Len(t, r.Comparisons, (len(others)-1)*len(batches))
	for _, c := range r.Comparisons {
		require.NotEqual(t, "update", c.Case)
		require.Equal(t, NoDifference, c.Verdict, "four rounds show nothing")
		require.Positive(t, c.Ratio.Median)
	}
	require.Contains(t, lines(r.NotMeasured), "update: ERR broken")
}

func lines(all []string) string { return strings.Join(all, "\n") }
