package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
	"sagabench/store/groupcommit"
	"sagabench/store/redisstore/redisconn"
)

// BenchmarkDispatch compares the ways in which concurrent callers' changes can
// reach the server: 64 or 256 callers each take sagas of two steps through their
// three changes. It reports the CPU of both sides per saga, in µs, and the bytes
// the server received. docs/adr/0002 rests on it.
func BenchmarkDispatch(b *testing.B) {
	autopipeline := func(options *redis.AutoPipelineOptions) func(testing.TB, *Store) applyOne {
		return func(t testing.TB, s *Store) applyOne {
			pipe, err := s.nodes.seeds[0].AutoPipelineWithOptions(options)
			require.NoError(t, err)
			return s.singly(pipe)
		}
	}
	ways := []struct {
		name string
		make func(testing.TB, *Store) applyOne
	}{
		{"groupcommit", func(t testing.TB, s *Store) applyOne {
			return committed(t, s, groupcommit.DefaultConfig())
		}},
		{"groupcommit-2-flushers", func(t testing.TB, s *Store) applyOne {
			cfg := groupcommit.DefaultConfig()
			cfg.Flushers = 2
			return committed(t, s, cfg)
		}},
		{"connection-per-call", func(_ testing.TB, s *Store) applyOne { return s.singly(s.nodes.seeds[0].Client) }},
		{"autopipeline-ordered", autopipeline(&redis.AutoPipelineOptions{})},
		{"autopipeline-unordered", autopipeline(&redis.AutoPipelineOptions{Unordered: true, MaxConcurrentBatches: 4})},
		{"autopipeline-fullduplex", autopipeline(&redis.AutoPipelineOptions{FullDuplex: true})},
	}
	for _, way := range ways {
		for _, callers := range []int{64, 256} {
			b.Run(fmt.Sprintf("%s/callers=%d", way.name, callers), func(b *testing.B) {
				server := labtest.Start(b, lab.Redis, lab.Config{})
				cfg := testConfig(server)
				cfg.Conns = 64
				s := open(b, cfg)
				defer s.Close()
				measureSagas(b, callers, way.make(b, s), s)
			})
		}
	}
}

// BenchmarkAlone shows what batching costs a caller who is alone: the three
// changes of a saga one after another, straight and through group commit.
func BenchmarkAlone(b *testing.B) {
	for name, apply := range map[string]func(testing.TB, *Store) applyOne{
		"straight": func(_ testing.TB, s *Store) applyOne {
			return func(ctx context.Context, change store.Change) error {
				return s.Apply(ctx, []store.Change{change})[0]
			}
		},
		"groupcommit": func(t testing.TB, s *Store) applyOne { return committed(t, s, groupcommit.DefaultConfig()) },
	} {
		b.Run(name, func(b *testing.B) {
			server := labtest.Start(b, lab.Redis, lab.Config{})
			s := open(b, testConfig(server))
			defer s.Close()
			measureSagas(b, 1, apply(b, s), s)
		})
	}
}

// BenchmarkShards shows what spreading sagas over more due indexes costs one
// server.
func BenchmarkShards(b *testing.B) {
	for _, shards := range []int{1, 2, 4, 8, 16, 64} {
		b.Run(strconv.Itoa(shards), func(b *testing.B) {
			server := labtest.Start(b, lab.Redis, lab.Config{})
			cfg := testConfig(server)
			cfg.Shards = shards
			s := open(b, cfg)
			defer s.Close()
			measureSagas(b, 64, committed(b, s, groupcommit.DefaultConfig()), s)
		})
	}
}

// BenchmarkCluster compares a cluster of three masters with one server, with as many
// callers per master. Three servers apart, each with a store of its own, show what of the
// difference comes from three servers on the processors of this machine, and not from the
// cluster. docs/adr/0014 rests on it.
func BenchmarkCluster(b *testing.B) {
	for _, callers := range []int{64, 192} {
		for _, servers := range []int{1, 3} {
			b.Run(fmt.Sprintf("apart/servers=%d/callers=%d", servers, servers*callers), func(b *testing.B) {
				stores := make([]*Store, servers)
				applies := make([]applyOne, servers)
				for i := range servers {
					stores[i] = open(b, testConfig(labtest.Start(b, lab.Redis, lab.Config{})))
					defer stores[i].Close()
					applies[i] = committed(b, stores[i], groupcommit.DefaultConfig())
				}
				measureSagas(b, servers*callers, func(ctx context.Context, change store.Change) error {
					mine := slotOf(change.Gid()) % servers
					return applies[mine](ctx, change)
				}, stores...)
			})
		}
		for _, shards := range []int{3, 6, 12, 24} {
			b.Run(fmt.Sprintf("cluster/servers=3/shards=%d/callers=%d", shards, 3*callers), func(b *testing.B) {
				cfg := testConfig(labtest.StartCluster(b, redisnodes.ClusterConfig{Masters: 3}).Nodes()[1])
				cfg.Shards = shards
				s := open(b, cfg)
				defer s.Close()
				measureSagas(b, 3*callers, committed(b, s, groupcommit.DefaultConfig()), s)
			})
		}
	}
}

// applyOne is one caller's change, applied in one of the ways.
type applyOne func(context.Context, store.Change) error

func committed(t testing.TB, s *Store, cfg groupcommit.Config) applyOne {
	c, err := groupcommit.New(s, cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c.Apply
}

// singly makes every change a script call of its own, over whatever carries it.
func (s *Store) singly(over redis.Cmdable) applyOne {
	return func(ctx context.Context, change store.Change) error {
		errs := make([]error, 1)
		call := s.plan([]store.Change{change}, errs)[0]
		args := make([]any, len(call.args))
		for i, a := range call.args {
			args[i] = a
		}
		call.cmd = over.EvalSha(ctx, call.script.SHA1, call.keys, args...)
		s.setErrors(ctx, call, errs)
		return errs[0]
	}
}

func measureSagas(b *testing.B, callers int, apply applyOne, stores ...*Store) {
	ctx := b.Context()
	before := serverCost(b, stores)
	cpu := ownCPU(b)
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range callers {
		group.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := oneSaga(ctx, apply, "saga-for-benchmark-"+strconv.FormatInt(n, 10)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	cpu = ownCPU(b) - cpu
	after := serverCost(b, stores)
	n := float64(b.N)
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/n, "client_us/saga")
	b.ReportMetric((after.cpu-before.cpu)*1e6/n, "server_us/saga")
	busiest := 0.0
	for i := range after.busiest {
		busiest = max(busiest, after.busiest[i]-before.busiest[i])
	}
	b.ReportMetric(busiest*1e6/n, "busiest_us/saga")
	b.ReportMetric((after.bytes-before.bytes)/n, "bytes/saga")
	b.ReportMetric((after.calls-before.calls)/n, "calls/saga")
	b.ReportMetric((after.memory-before.memory)/n, "memory/saga")
}

func oneSaga(ctx context.Context, apply applyOne, gid string) error {
	set := func(b store.Branch) []store.SetMark {
		return []store.SetMark{{Branch: b, Mark: store.MarkSucceeded}}
	}
	for _, change := range []store.Change{
		&store.Create{GID: gid, Body: []byte(`{"steps":[{},{}]}`), Steps: 2, Owner: "bench", Due: time.Minute},
		&store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted, Marks: set(store.Action(0))},
		&store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded, Marks: set(store.Action(1))},
	} {
		if err := apply(ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// cost is what the servers say they have spent since it started.
type cost struct {
	cpu, bytes, calls, memory float64
	busiest                   []float64 // CPU of each
}

func serverCost(b *testing.B, stores []*Store) (sum cost) {
	for _, s := range stores {
		for _, server := range s.nodes.all() {
			one := costOf(b, server)
			sum.cpu += one.cpu
			sum.busiest = append(sum.busiest, one.cpu)
			sum.bytes += one.bytes
			sum.calls += one.calls
			sum.memory += one.memory
		}
	}
	return sum
}

func costOf(b *testing.B, server *node) cost {
	text, err := server.Info(b.Context(), "everything").Result()
	require.NoError(b, err)
	info := redisconn.Fields(text)
	number := func(name string) float64 {
		f, err := strconv.ParseFloat(info[name], 64)
		require.NoError(b, err, name)
		return f
	}
	var calls int
	_, err = fmt.Sscanf(info["cmdstat_evalsha"], "calls=%d", &calls)
	if err != nil && info["cmdstat_evalsha"] != "" {
		require.NoError(b, err)
	}
	return cost{
		cpu:    number("used_cpu_user") + number("used_cpu_sys"),
		bytes:  number("total_net_input_bytes"),
		calls:  float64(calls),
		memory: number("used_memory"),
	}
}

func ownCPU(b *testing.B) time.Duration {
	var use syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
