package merge

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/bench/internal/session"
)

// hostDir writes the result of a host that measured whole seconds from start on, with
// so many sagas in each, of latencies around the µs given.
func hostDir(t *testing.T, start time.Time, perS []int, us int64, change func(*result.Summary)) string {
	t.Helper()
	dir := t.TempDir()
	var log, results bytes.Buffer
	hlog, err := result.NewHistogramLog(&log, start)
	require.NoError(t, err)
	encode := vegeta.NewEncoder(&results)
	rng := rand.New(rand.NewPCG(1, uint64(us)))
	service, all, n := result.NewHistogram(), result.NewHistogram(), int64(0)
	for i, sagas := range perS {
		h, at := result.NewHistogram(), start.Add(time.Duration(i)*time.Second)
		for k := range sagas {
			latency := us + rng.Int64N(us)
			require.NoError(t, errors.Join(h.RecordValue(latency), all.RecordValue(latency), service.RecordValue(latency/2)))
			require.NoError(t, encode(&vegeta.Result{
				Seq: uint64(n), Code: 200, Timestamp: at.Add(time.Duration(k) * time.Second / time.Duration(sagas)),
				Latency: time.Duration(latency) * time.Microsecond, BytesIn: 10, BytesOut: 20,
			}))
			n++
		}
		require.NoError(t, hlog.Interval(h, at, at.Add(time.Second)))
	}
	end := start.Add(time.Duration(len(perS)) * time.Second)
	require.NoError(t, hlog.Service(service, start, end))
	s := resulttest.ClosedRun()
	s.Run.Started, s.Run.DurationS = start.Add(-2*time.Second), float64(len(perS))
	s.Run.Command = "bench load --target http://a,http://b --in-flight 64"
	s.Run.Targets = []string{"http://b", "http://a"}
	s.Run.Store.Driver = "redis"
	s.Load.Requests, s.Load.AchievedPerS = n, float64(n)/s.Run.DurationS
	s.LatencyMS, s.ServiceMS = result.LatencyOf(all), result.LatencyOf(service)
	change(&s)
	for name, content := range map[string][]byte{result.FileHistogramLog: log.Bytes(), result.FileResults: results.Bytes(), result.FileAcknowledged: []byte(dir + "\n")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	require.NoError(t, report.WriteRun(dir, s))
	return dir
}

func same(*result.Summary) {}

func runs(t *testing.T, dirs ...string) (result.Summary, result.Recording, error) {
	t.Helper()
	var results []result.Result
	for _, dir := range dirs {
		r, err := result.ReadResult(dir)
		require.NoError(t, err)
		results = append(results, r)
	}
	return Runs(results...)
}

func per(second int, n int) (perS []int) {
	for range n {
		perS = append(perS, second)
	}
	return perS
}

func TestMerge_AddsUpWhatTheHostsDid(t *testing.T) {
	t.Parallel()
	a := hostDir(t, resulttest.Began, per(1000, 10), 2000, func(s *result.Summary) {
		s.Load.Errors, s.Load.ErrorsByKind = 3, map[string]int64{"timeout": 3}
		s.Resources = result.Resources{LoadCores: resulttest.Ptr(0.5), StoreCores: resulttest.Ptr(0.3), BusiestCore: resulttest.Ptr(0.4)}
	})
	b := hostDir(t, resulttest.Began.Add(time.Second), per(3000, 10), 8000, func(s *result.Summary) {
		s.Load.Errors, s.Load.ErrorsByKind = 1, map[string]int64{"http 500": 1}
		s.Resources = result.Resources{LoadCores: resulttest.Ptr(0.7), StoreCores: resulttest.Ptr(0.4), BusiestCore: resulttest.Ptr(0.9)}
		s.Validity = result.Validity{Because: []string{"late"}}
		s.Check.Terminal, s.Check.Lost = resulttest.Ptr[int64](200_000), resulttest.Ptr[int64](2)
	})
	s, rec, err := runs(t, a, b)
	require.NoError(t, err)

	require.EqualValues(t, 40_000, rec.Latency.TotalCount())
	require.EqualValues(t, 40_000, s.Load.Requests)
	require.EqualValues(t, 4, s.Load.Errors)
	require.Equal(t, map[string]int64{"timeout": 3, "http 500": 1}, s.Load.ErrorsByKind)
	require.Equal(t, 128, s.Load.InFlight)
	require.InDelta(t, 4000, s.Load.AchievedPerS, 1e-6)
	require.InDelta(t, 9, s.Run.DurationS, 1e-9, "the common time")
	require.Nil(t, s.Load.Delayed, "a closed loop")

	// A quarter of the latencies lies between 2 and 4 ms, the others between 8 and 16.
	require.InDelta(t, 8+8/3.0, *s.LatencyMS.P50, 0.1)
	require.InDelta(t, 4+4/3.0, *s.ServiceMS.P50, 0.1)

	require.InDelta(t, 1.2, *s.Resources.LoadCores, 1e-9)
	require.InDelta(t, 0.9, *s.Resources.BusiestCore, 1e-9)
	require.EqualValues(t, 2*134_900, s.Check.Acknowledged)
	require.EqualValues(t, 200_000, *s.Check.Terminal)
	require.EqualValues(t, 2, *s.Check.Lost)
	require.False(t, s.Validity.Valid, "the worse of both")
	require.Equal(t, []string{b + ": late"}, s.Validity.Because)
	require.Contains(t, s.Validity.Warnings, a+": all hosts were measuring for 9.00 s of its 10.0 s (90.0%); its latencies are of all its time")
	require.Len(t, s.Timeline, 9)
	require.InDelta(t, 4000, *s.Timeline[4].SagasPerS, 1e-6)
	require.Nil(t, s.Timeline[4].P99MS, "percentiles are never averaged")
	require.Equal(t, 4, s.Environment.Cores)
	require.Equal(t, "bench load --target http://a,http://b --in-flight 64 # on 2 hosts at once", s.Run.Command)
	require.Equal(t, 2, s.Run.AppHosts, "both drove the same two")
	require.Equal(t, []string{"http://a", "http://b"}, s.Run.Targets)
}

// Each host takes the sagas of the others for those of a stranger.
func TestMerge_KnowsWhoseSagasTheStoreHas(t *testing.T) {
	t.Parallel()
	differ := result.CountsDiffer + "the store counts more"
	for stored, want := range map[int64]bool{2 * 134_900: false, 3 * 134_900: true} {
		start := resulttest.Began
		host := func() string {
			start = start.Add(time.Millisecond)
			return hostDir(t, start, per(100, 10), 2000, func(s *result.Summary) {
				s.Check.Terminal, s.Check.Unfinished = &stored, resulttest.Ptr[int64](0)
				s.Validity.Warnings = []string{differ, "late"}
			})
		}
		a := host()
		s, _, err := runs(t, a, host())
		require.NoError(t, err)
		require.Contains(t, s.Validity.Warnings, a+": late")
		require.Equal(t, want, slices.Contains(s.Validity.Warnings, a+": "+differ))
	}
}

// Load hosts may be processes, or namespaces with CPUs of their own, of one machine.
func TestMerge_CountsAMachineOnce(t *testing.T) {
	t.Parallel()
	start := resulttest.Began
	on := func(id, cpus string) string {
		start = start.Add(time.Millisecond)
		return hostDir(t, start, per(100, 10), 2000, func(s *result.Summary) {
			e := &s.Environment
			e.HostID, e.CPUs.Load, e.Cores, e.Memory, e.CPU = id, &cpus, 2, 1000, "a CPU"
			s.Resources = result.Resources{LoadCores: resulttest.Ptr(0.5), LoadCoresUsable: resulttest.Ptr(2.0), NetworkBytesPerS: resulttest.Ptr(100.0)}
		})
	}
	for name, tt := range map[string]struct {
		dirs                   []string
		cores, memory, network float64
		cpu                    string
	}{
		"the same host":       {[]string{on("boot/net1", "0-1"), on("boot/net1", "0-1")}, 2, 1000, 100, "a CPU"},
		"hosts of a machine":  {[]string{on("boot/net1", "0-1"), on("boot/net2", "0-1")}, 2, 1000, 200, "a CPU"},
		"CPUs of their own":   {[]string{on("boot/net1", "0-1"), on("boot/net2", "2-3")}, 4, 1000, 200, "a CPU"},
		"machines":            {[]string{on("boot/net1", "0-1"), on("other/net1", "0-1")}, 4, 2000, 200, "2 hosts, a CPU"},
		"nobody knows, older": {[]string{on("", "0-1"), on("", "0-1")}, 4, 2000, 200, "2 hosts, a CPU"},
	} {
		s, _, err := runs(t, tt.dirs...)
		require.NoError(t, err)
		require.InDelta(t, tt.cores, s.Environment.Cores, 0, name)
		require.InDelta(t, tt.cores, *s.Resources.LoadCoresUsable, 0, name)
		require.InDelta(t, 1, *s.Resources.LoadCores, 0, name)
		require.InDelta(t, tt.memory, s.Environment.Memory, 0, name)
		require.InDelta(t, tt.network, *s.Resources.NetworkBytesPerS, 0, name)
		require.Equal(t, tt.cpu, s.Environment.CPU, name)
	}
}

func TestMerge_CountsTheStoreOnce(t *testing.T) {
	t.Parallel()
	cost := func(store, app, load float64) func(*result.Summary) {
		return func(s *result.Summary) {
			s.CostPerSaga = result.Cost{StoreCPUUS: resulttest.Ptr(store), AppCPUUS: resulttest.Ptr(app), LoadCPUUS: resulttest.Ptr(load), StoreFsyncs: resulttest.Ptr(store / 100)}
		}
	}
	// The store spends 10 µs on each of 400 sagas/s, and the app 40: each host takes
	// it all for its own.
	a := hostDir(t, resulttest.Began, per(100, 10), 2000, cost(40, 160, 20))
	b := hostDir(t, resulttest.Began.Add(100*time.Millisecond), per(300, 10), 2000, cost(40/3.0, 160/3.0, 24))
	s, _, err := runs(t, a, b)
	require.NoError(t, err)
	require.InDelta(t, 10, *s.CostPerSaga.StoreCPUUS, 0.2)
	require.InDelta(t, 0.1, *s.CostPerSaga.StoreFsyncs, 0.002)
	require.InDelta(t, 40, *s.CostPerSaga.AppCPUUS, 0.8, "both drove the same app servers")
	require.InDelta(t, 23, *s.CostPerSaga.LoadCPUUS, 1e-9)
	require.Nil(t, s.CostPerSaga.StoreCalls)

	own := hostDir(t, resulttest.Began.Add(150*time.Millisecond), per(300, 10), 2000, func(s *result.Summary) {
		cost(40/3.0, 44, 24)(s)
		s.CostPerSaga.StoreCPUUS = nil
		s.Run.Targets = []string{"http://c"}
	})
	s, _, err = runs(t, a, own)
	require.NoError(t, err)
	require.InDelta(t, (160+3*44)/4.0, *s.CostPerSaga.AppCPUUS, 1e-9, "each its own")
	require.InDelta(t, 10, *s.CostPerSaga.StoreCPUUS, 0.2, "one of them knows")

	mixed := hostDir(t, resulttest.Began.Add(time.Millisecond), per(300, 10), 2000, func(s *result.Summary) {
		cost(10, 44, 24)(s)
		s.Run.Targets = []string{"http://b"}
	})
	s, _, err = runs(t, a, mixed)
	require.NoError(t, err)
	require.Nil(t, s.CostPerSaga.AppCPUUS, "one app server served both")

	older := hostDir(t, resulttest.Began.Add(2*time.Millisecond), per(300, 10), 2000, func(s *result.Summary) {
		cost(10, 44, 24)(s)
		s.Run.Targets = nil
	})
	s, _, err = runs(t, a, older)
	require.NoError(t, err)
	require.Nil(t, s.CostPerSaga.AppCPUUS, "its result does not have its targets")
	require.Zero(t, s.Run.AppHosts)

	late := hostDir(t, resulttest.Began.Add(2*time.Second), per(300, 10), 2000, cost(10, 40, 24))
	s, _, err = runs(t, a, late)
	require.NoError(t, err)
	require.Nil(t, s.CostPerSaga.StoreCPUUS, "for two seconds nobody knows what the other did")
	require.NotNil(t, s.CostPerSaga.LoadCPUUS)
}

func TestMerge_Refuses(t *testing.T) {
	t.Parallel()
	a := hostDir(t, resulttest.Began, per(100, 4), 2000, same)
	for want, dir := range map[string]string{
		"are the same result": a,
		"the saga of":         hostDir(t, resulttest.Began.Add(1), per(100, 4), 2000, func(s *result.Summary) { s.Run.Scenario.Steps = 3 }),
		"the store of":        hostDir(t, resulttest.Began.Add(2), per(100, 4), 2000, func(s *result.Summary) { s.Run.Store.Driver = "mysql" }),
		"the durability of":   hostDir(t, resulttest.Began.Add(3), per(100, 4), 2000, func(s *result.Summary) { s.Run.Store.Durability = "D0" }),
		"the mode of":         hostDir(t, resulttest.Began.Add(4), per(100, 4), 2000, func(s *result.Summary) { s.Load.Mode = result.Open }),
		"all 2 were measuring at the same time for only 1.00 s of the 4.00 s of": hostDir(t, resulttest.Began.Add(3*time.Second), per(100, 4), 2000, same),
		"all 2 were measuring at the same time for only 0 s of the 4.00 s of":    hostDir(t, resulttest.Began.Add(time.Hour), per(100, 4), 2000, same),
	} {
		_, _, err := runs(t, a, dir)
		require.ErrorIs(t, err, ErrMerge, want)
		require.ErrorContains(t, err, want)
	}
	_, _, err := runs(t, a)
	require.ErrorIs(t, err, ErrMerge)
}

func TestMerge_TakesFilesOfVegeta(t *testing.T) {
	t.Parallel()
	a := hostDir(t, resulttest.Began, per(100, 10), 2000, same)
	b := hostDir(t, resulttest.Began.Add(200*time.Millisecond), per(300, 10), 2000, same)
	var attacks []result.Result
	for _, dir := range []string{a, b} {
		attack, err := session.ReadVegeta(filepath.Join(dir, result.FileResults))
		require.NoError(t, err)
		attacks = append(attacks, attack)
	}
	s, _, err := Runs(attacks...)
	require.NoError(t, err)
	require.EqualValues(t, 4000, s.Load.Requests)
	require.InDelta(t, 400, s.Load.AchievedPerS, 10)
	require.EqualValues(t, 4000, s.Check.Acknowledged)

	into := filepath.Join(t.TempDir(), "merged")
	require.ErrorIs(t, Files(into, a, attacks[1].Dir), ErrMerge)
	require.NoDirExists(t, into)
}

func TestMergeFiles_AgreeWithVegeta(t *testing.T) {
	t.Parallel()
	a := hostDir(t, resulttest.Began, per(200, 10), 2000, same)
	b := hostDir(t, resulttest.Began.Add(200*time.Millisecond), per(600, 10), 2000, same)
	into := filepath.Join(t.TempDir(), "merged")
	require.NoError(t, Files(into, a, b))
	s, _, err := runs(t, a, b)
	require.NoError(t, err)

	// As `vegeta report a/results.bin b/results.bin` reads several, and as it reads
	// what was merged.
	open := func(dir string) vegeta.Decoder {
		f, err := os.Open(filepath.Join(dir, result.FileResults))
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return vegeta.DecoderFor(f)
	}
	for name, decode := range map[string]vegeta.Decoder{
		"several": vegeta.NewRoundRobinDecoder(open(a), open(b)),
		"merged":  open(into),
	} {
		var m vegeta.Metrics
		for {
			var r vegeta.Result
			if err := decode(&r); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
			m.Add(&r)
		}
		m.Close()
		require.EqualValues(t, s.Load.Requests, m.Requests, name)
		require.InDelta(t, 1, m.Success, 1e-9, name)
		// Of the 10.2 s from the first to the last request, all sent for 9.8 s.
		require.InEpsilon(t, s.Load.AchievedPerS, m.Rate, 0.025, name)
		require.InEpsilon(t, s.Load.AchievedPerS, m.Throughput, 0.025, name)
		require.InEpsilon(t, *s.LatencyMS.P99, m.Latencies.P99.Seconds()*1000, 0.01, name)
	}

	merged := s
	require.NoError(t, report.WriteRun(into, merged))
	r, err := result.ReadResult(into)
	require.NoError(t, err)
	require.Equal(t, s.LatencyMS, result.LatencyOf(r.Recording.Latency))
	journal, err := os.ReadFile(filepath.Join(into, result.FileAcknowledged))
	require.NoError(t, err)
	require.Equal(t, a+"\n"+b+"\n", string(journal))
}

func TestMerge_SaysWhatEachHostOffered(t *testing.T) {
	t.Parallel()
	offer := func(profiles ...string) (m merge) {
		for _, profile := range profiles {
			var h host
			h.Run = &result.Summary{Measurement: result.Measurement{Load: result.Load{Mode: result.Open, Profile: profile}}}
			m.hosts = append(m.hosts, h)
		}
		return m
	}
	profile := func(l result.Load) string { return l.Profile }
	require.Equal(t, "100/s", offer("100/s", "100/s").each(profile))
	require.Equal(t, "100/s + 1/s..2/s", offer("100/s", "1/s..2/s").each(profile))
}
