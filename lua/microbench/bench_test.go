package microbench

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/lua"
	"sagabench/store"
	"sagabench/store/redisstore"
)

// quick measures everything, with windows too short to be believed.
func quick(server *lab.Server) Config {
	return Config{URL: server.URL(), Functions: true, Window: time.Millisecond, Due: []int{400, 800}, Finished: 1000}
}

// open opens a Bench that has to leave the server as it was.
func open(t testing.TB, cfg Config) *Bench {
	b, err := Open(context.WithoutCancel(t.Context()), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// keysOn are the keys on a server.
func keysOn(t *testing.T, server *lab.Server) []string {
	b, err := Open(t.Context(), Config{URL: server.URL()})
	require.NoError(t, err)
	defer b.Close()
	r, err := b.control.do("KEYS", "*")
	require.NoError(t, err)
	var all []string
	for _, item := range r.items {
		if !strings.HasPrefix(item.text, b.keys.prefix) {
			all = append(all, item.text)
		}
	}
	return all
}

// TestBench_PricesEverything runs on every version of Redis that there is a binary
// of.
func TestBench_PricesEverything(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary})
			b := open(t, quick(server))
			_, err := b.control.do("SET", "of-somebody-else", "x")
			require.NoError(t, err)
			require.NoError(t, b.Round(t.Context()))
			require.NoError(t, b.Memory(t.Context()))
			requireComplete(t, b)
			require.NoError(t, b.Close())
			require.Equal(t, []string{"of-somebody-else"}, keysOn(t, server))
		})
	}
}

func requireComplete(t *testing.T, b *Bench) {
	t.Helper()
	r := b.Result()
	old := b.server.before(7, 0)
	for _, c := range b.cells {
		require.Empty(t, c.failure, c.name())
		require.Len(t, c.samples, 1, c.name())
	}
	for _, p := range r.Prices {
		require.Positive(t, p.CallsPerS.Median, p.name())
		require.Positive(t, p.BytesIn, p.name())
		require.Positive(t, p.BytesOut, p.name())
	}
	// 16 sagas of two steps in four due indexes.
	s := base.of(16)
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
	require.Len(t, r.Splits, 10)
	for _, s := range r.Splits {
		require.Contains(t, s.Dearest, ".lua:", s.Probe)
		sum := 0.0
		for _, p := range s.Parts {
			sum += p.US
		}
		require.InDelta(t, s.TotalUS, sum, 1e-6, s.Probe)
	}
	require.Len(t, r.Ceilings, len(batches)*len(pipelines)+len(splitBatches)*(len(steps)-1))
	require.Len(t, r.Classic, len(pipelines))
	for _, c := range r.Classic {
		require.Greater(t, c.BytesIn, 4000.0)
		require.Len(t, c.Ratios, len(batches))
	}
	require.Len(t, r.Records, len(memoryShapes())+1)
	require.InDelta(t, 215, r.Records[0].FinishedBytes, 60)
	if function := slices.ContainsFunc(r.Prices, func(p Price) bool { return p.Probe == "FCALL, one SET" }); old {
		require.False(t, function)
		require.Contains(t, r.NotMeasured, "FCALL: Redis "+b.server.Version+" has no functions")
	} else {
		require.True(t, function)
		require.NotNil(t, r.Records[0].Kept)
		require.InDelta(t, 5, *r.Records[0].Kept, 1.5)
	}
}

func TestBench_AgreesOnHowARunsSagasCame(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := redisstore.DefaultConfig()
	cfg.URL = server.URL()
	s, err := redisstore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	b := open(t, quick(server))
	before, err := b.Look()
	require.NoError(t, err)
	const sagas, batch = 400, 8
	for first := 0; first < sagas; first += batch {
		for _, change := range []func(gid string) store.Change{
			func(gid string) store.Change {
				return &store.Create{GID: gid, Body: []byte("{}"), Steps: 2, Owner: owner, Due: lease}
			},
			func(gid string) store.Change {
				return &store.Transition{GID: gid, Epoch: 1, From: 's', To: 's', Marks: []store.SetMark{{Branch: 0, Mark: store.MarkSucceeded}}}
			},
			func(gid string) store.Change {
				return &store.Transition{GID: gid, Epoch: 1, From: 's', To: 'S', Marks: []store.SetMark{{Branch: 2, Mark: store.MarkSucceeded}}}
			},
		} {
			var changes []store.Change
			for i := range batch {
				changes = append(changes, change("run-"+strconv.Itoa(first+i)))
			}
			for _, err := range s.Apply(t.Context(), changes) {
				require.NoError(t, err)
			}
		}
	}
	after, err := b.Look()
	require.NoError(t, err)
	const trips = 3.0 / batch
	a, err := b.Agree(t.Context(), before, after, Run{Steps: 2, SagasPerS: 10_000, CPUUS: 10, Calls: trips, RoundTrips: trips})
	require.NoError(t, err)
	require.InDelta(t, batch, a.SagasPerCall, 1e-9)
	require.InDelta(t, 1, a.CallsAtOnce, 1e-9)
	require.Positive(t, a.PacedUS)
	require.Positive(t, a.BackToBackUS)
	require.Len(t, b.Result().Agreements, 1)
}

func TestBench_Interrupted_KeepsWhatItHas(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := quick(server)
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Progress = func(p Progress) {
		if p.Done == 5 {
			cancel()
		}
	}
	b := open(t, cfg)
	require.ErrorIs(t, b.Round(ctx), context.Canceled)
	require.Len(t, b.Result().Prices, 5)
	require.NoError(t, b.Close())
	require.Empty(t, keysOn(t, server))
}

// A user of a server that is somebody else's may do little, and CONFIG least.
func TestBench_WithoutRights_SaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"user": "bench on >word ~b*:* -@all +ping +select +info +time +script|load +evalsha +get +set +setnx +del" +
			" +getrange +setrange +pexpire +pexpireat +zadd +zrem +zscore",
	}})
	cfg := quick(server)
	cfg.URL = "redis://bench:word@" + server.Addr()
	cfg.Functions = false
	b := open(t, cfg)
	require.NoError(t, b.Round(t.Context()))
	require.NoError(t, b.Memory(t.Context()))
	r := b.Result()
	require.Empty(t, r.Server.Settings)
	require.Len(t, r.Splits, 10, "what it is about was measured")
	require.Empty(t, r.Classic)
	for _, want := range []string{"its settings were not read: CONFIG: NOPERM", "classic branch: NOPERM", "EVAL, one SET: NOPERM", "FCALL: its function would stay", "allocations: MEMORY: NOPERM"} {
		require.Contains(t, lines(r.NotMeasured), want)
	}
	require.NoError(t, b.Close())
	require.Empty(t, keysOn(t, server))
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
		_, err := Open(t.Context(), Config{URL: url})
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "letmein")
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestBench_NoRoomForALargeIndex(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"maxmemory": "16mb"}})
	cfg := quick(server)
	cfg.Due = []int{400, 10_000_000}
	b := open(t, cfg)
	require.NoError(t, b.Round(t.Context()))
	sizes := map[int]bool{}
	for _, p := range b.Result().Prices {
		sizes[p.DueIndex] = true
	}
	require.Equal(t, []int{0, 400}, slices.Sorted(maps.Keys(sizes)))
	require.Contains(t, b.Result().NotMeasured[0], "due index of 10000000: the server has")
}

func TestBench_NoticesOthers(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := quick(server)
	cfg.Brief = true
	b, other := open(t, cfg), open(t, Config{URL: server.URL()})
	require.NoError(t, b.Round(t.Context()))
	require.NotContains(t, lines(b.Result().Warnings), "others:")
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := other.control.do("PING", strings.Repeat("x", 1<<16)); err != nil {
				stopped <- err
				return
			}
		}
	}()
	require.NoError(t, b.Round(t.Context()))
	close(stop)
	require.NoError(t, <-stopped)
	require.Contains(t, lines(b.Result().Warnings), "others:")
}

func TestBench_AgainstOtherScripts(t *testing.T) {
	t.Parallel()
	others := slices.Clone(lua.All())
	for i, s := range others { // the same, and another script to the server
		others[i] = newScript(s.Name, s.Source+"-- another\n")
	}
	others[1] = newScript("update", "return redis.error_reply('ERR broken')")
	cfg := quick(labtest.Start(t, lab.Redis, lab.Config{}))
	cfg.Against = others
	b := open(t, cfg)
	for range 4 {
		require.NoError(t, b.Round(t.Context()))
	}
	r := b.Result()
	require.Len(t, r.Comparisons, (len(others)-1)*len(batches))
	for _, c := range r.Comparisons {
		require.NotEqual(t, "update", c.Probe)
		require.Equal(t, NoDifference, c.Verdict, "four rounds show nothing")
		require.Positive(t, c.Ratio.Median)
	}
	require.Contains(t, lines(r.NotMeasured), "update: ERR broken")
}

func lines(all []string) string { return strings.Join(all, "\n") }
