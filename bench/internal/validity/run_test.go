package validity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
)

// goodEvidence goes with quietRun: Judge has nothing to say of them.
func goodEvidence() Evidence {
	return Evidence{
		Planned:   10 * time.Second,
		Intervals: resulttest.Intervals(900, 900, 900, 900, 900, 900),
		Resources: result.Resources{
			LoadCores: resulttest.Ptr(0.2), AppCores: resulttest.Ptr(0.5), StoreCores: resulttest.Ptr(0.1),
			StoreOneCore: true, HostBusy: resulttest.Ptr(0.5), HostSteal: resulttest.Ptr(0.0),
		},
		LoadCoresUsable: 2,
		StoreSagas:      resulttest.Ptr[int64](134_900), Leftovers: resulttest.Ptr[int64](0),
		After: resulttest.Ptr(resulttest.ClosedRun().Run.Store),
	}
}

func quietRun() result.Summary {
	s := resulttest.ClosedRun()
	s.Run.SharedHost = false
	s.Load = result.Load{
		Mode: result.Open, InFlight: 1000, OfferedPerS: resulttest.Ptr(11_250.0), AchievedPerS: 11_240,
		Requests: 112_467, Late: resulttest.Ptr[int64](0), Dropped: resulttest.Ptr[int64](0),
	}
	return s
}

func TestJudge_GoodRunHasNoWarnings(t *testing.T) {
	t.Parallel()
	require.Equal(t, result.Validity{Valid: true, Warnings: []string{}}, Judge(quietRun(), goodEvidence()))
}

func TestJudge_SaysEachFaultWithItsNumbers(t *testing.T) {
	t.Parallel()
	closed := func(s *result.Summary) { s.Load.Mode, s.Load.OfferedPerS, s.Load.InFlight = result.Closed, nil, 64 }
	const late = "late load generator: 2,000 of 112,467 requests were sent over 10 ms late with room in flight"
	lateOnShared := func(load, app, store, host float64) func(*result.Summary, *Evidence) {
		return func(s *result.Summary, e *Evidence) {
			s.Run.SharedHost, e.LateOwn = true, 2000
			e.LoadCores, e.AppCores, e.StoreCores, e.HostBusy = &load, &app, &store, &host
		}
	}
	for name, c := range map[string]struct {
		spoil func(*result.Summary, *Evidence)
		valid bool
		want  string
	}{
		"interrupted": {
			func(s *result.Summary, e *Evidence) { e.Incomplete, s.Run.DurationS = "interrupted", 4.2 }, false,
			"incomplete: interrupted; 4.20 s of 10.0 s were measured",
		},
		"probe failed": {
			func(_ *result.Summary, e *Evidence) { e.Failures = []string{"the app's CPU: no such process"} }, true,
			"not measured: the app's CPU: no such process",
		},
		"lost": {
			func(s *result.Summary, _ *Evidence) { s.Check.Lost = resulttest.Ptr[int64](3) }, false,
			"broken promise: 3 of 134,900 acknowledged sagas lost",
		},
		"both outcomes": {
			func(s *result.Summary, _ *Evidence) { s.Check.BothOutcomes = resulttest.Ptr[int64](1) }, false,
			"broken promise: 1 of 134,900 acknowledged sagas with both outcomes",
		},
		"uncompensated": {
			func(s *result.Summary, _ *Evidence) { s.Check.Uncompensated = resulttest.Ptr[int64](2) }, false,
			"broken promise: 2 of 134,900 acknowledged sagas uncompensated",
		},
		"audit": {
			func(_ *result.Summary, e *Evidence) { e.Findings = []string{"saga g1: its index entry is missing"} }, false,
			"audit: saga g1: its index entry is missing",
		},
		"not audited": {
			func(s *result.Summary, _ *Evidence) { s.Check = result.Check{Acknowledged: 134_900} }, true,
			"not audited: the store was not searched for the 134,900 sagas that were acknowledged",
		},
		"unfinished": {
			func(s *result.Summary, _ *Evidence) { s.Check.Unfinished = resulttest.Ptr[int64](1) }, true,
			"unfinished: 1 saga had not ended when the store was audited",
		},
		"nothing sent": {
			func(s *result.Summary, _ *Evidence) { s.Load.Requests = 0 }, false,
			"nothing sent: no request was made in the measured part",
		},
		"errors above the budget": {func(s *result.Summary, _ *Evidence) {
			s.Load.Errors, s.Load.ErrorsByKind = 225, map[string]int64{"timeout": 25, "http 500": 200}
		}, false, "errors: 225 of 112,467 requests (0.200%; 0.100% are allowed): 200 × http 500, 25 × timeout"},
		"errors within a wider budget": {func(s *result.Summary, e *Evidence) {
			e.ErrorBudget = 0.01
			s.Load.Errors, s.Load.ErrorsByKind = 225, map[string]int64{"timeout": 225}
		}, true, "errors: 225 of 112,467 requests (0.200%; 1.00% are allowed): 225 × timeout"},
		"store counts fewer": {
			func(_ *result.Summary, e *Evidence) { e.StoreSagas = resulttest.Ptr[int64](134_899) }, false,
			"counts differ: clients got answers for 134,900 sagas, the store counts 134,899",
		},
		"store counts more": {
			func(_ *result.Summary, e *Evidence) { e.StoreSagas = resulttest.Ptr[int64](135_900) }, true,
			"counts differ: the store counts 135,900 sagas, clients got answers for 134,900 and 0 errors: another client uses the store",
		},
		"leftovers": {
			func(_ *result.Summary, e *Evidence) { e.Leftovers = resulttest.Ptr[int64](7) }, true,
			"leftovers: the store held 7 sagas before the run",
		},
		"setting changed": {
			func(_ *result.Summary, e *Evidence) {
				e.After.Settings = map[string]string{"sync": "false", "cache": "64 MiB"}
			}, false,
			`settings changed during the run: sync "true", then "false"`,
		},
		"durability changed": {
			func(_ *result.Summary, e *Evidence) { e.After.Durability = "D2" }, false,
			"settings changed during the run: durability D3, then D2",
		},
		"version changed": {
			func(_ *result.Summary, e *Evidence) { e.After.Version = "2.1.8" }, false,
			"settings changed during the run: version 2.1.7, then 2.1.8",
		},
		"overloaded": {
			func(s *result.Summary, _ *Evidence) { s.Load.OfferedPerS = resulttest.Ptr(12_000.0) }, true,
			"overloaded: 11,240/s achieved of 12,000/s offered (93.7%); the latencies depend on the length of the run: do not quote them",
		},
		"late generator": {
			func(s *result.Summary, e *Evidence) { e.LateOwn = 2000 }, false,
			late,
		},
		"late generator on a machine that app and store fill": {
			lateOnShared(0.5, 0.75, 0.5, 0.9), true,
			late + "; app and store used its cores, and the latencies include that wait (in cores: load 0.50, app 0.75, store 0.50)",
		},
		"late generator on a machine with room": {
			lateOnShared(0.25, 0.75, 0.5, 0.9), false,
			late,
		},
		"late generator, app on another machine": {
			lateOnShared(0.5, 1.5, 0.1, 0.4), false,
			late,
		},
		"late generator that fills the machine": {
			lateOnShared(1.25, 0.5, 0.1, 0.95), false,
			late,
		},
		"busy generator": {
			func(_ *result.Summary, e *Evidence) { e.LoadCores = resulttest.Ptr(1.7) }, true,
			"load generator: it keeps 1.70 of its 2 cores busy (85.0%) and may be the limit",
		},
		"pauses": {
			func(_ *result.Summary, e *Evidence) { e.GCPause = 200 * time.Millisecond }, true,
			"load generator: garbage collection stopped it for 200 ms of 10.0 s (2.00%)",
		},
		"store's core": {
			func(s *result.Summary, e *Evidence) { closed(s); e.StoreCores = resulttest.Ptr(0.97) }, true,
			"limit: store CPU: the store keeps 97% of the one core busy on which it runs commands",
		},
		"machine full": {
			func(s *result.Summary, e *Evidence) { closed(s); e.HostBusy = resulttest.Ptr(0.99) }, true,
			"limit: load generator: the cores of its machine are 99% busy (by itself 0.20 cores)",
		},
		"one core": {
			func(s *result.Summary, e *Evidence) { closed(s); e.BusiestCore = resulttest.Ptr(0.98) }, true,
			"limit: load generator: one core of its machine is 98% busy (by itself 0.20 cores)",
		},
		"waiting": {
			func(s *result.Summary, _ *Evidence) { closed(s) }, true,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting; more in flight may reach a higher rate",
		},
		"waiting for the disk": {
			func(s *result.Summary, e *Evidence) {
				closed(s)
				e.StoreFsyncsPerS = resulttest.Ptr(s.Load.AchievedPerS / 8)
			}, true,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting, and the store fsyncs 1,405 times/s, 8.00 sagas each; more in flight may reach a higher rate",
		},
		"a disk that nobody waits for": {
			func(s *result.Summary, e *Evidence) { closed(s); e.StoreFsyncsPerS = resulttest.Ptr(1.0) }, true,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting; more in flight may reach a higher rate",
		},
		"connections": {
			func(s *result.Summary, e *Evidence) {
				closed(s)
				e.StoreCallsInFlight, e.StoreConnWaits, e.StoreConns = resulttest.Ptr(3.9), resulttest.Ptr(2.0), resulttest.Ptr(2.0)
			}, true,
			"limit: connections to the store: the 2 that the app may have are in use 95% of the time, and of 3.9 batches in flight 2.0 wait for one",
		},
		"connections that the app accepts": {
			func(s *result.Summary, e *Evidence) { closed(s); e.AppAcceptWait = resulttest.Ptr(0.95) }, true,
			"limit: connections to the app: all that it accepts are in use, and clients are turned away 95% of the time",
		},
		"connections that the server refuses": {
			func(s *result.Summary, e *Evidence) {
				s.Load.Errors, s.Load.ErrorsByKind, e.StoreServerConns = 2000, map[string]int64{"http 503": 2000}, resulttest.Ptr(1.0)
			}, false,
			"errors: 2,000 of 112,467 requests (1.78%; 0.100% are allowed): 2,000 × http 503; 100% of the connections that the store's server allows are open, and it refuses more",
		},
		"clamped": {
			func(_ *result.Summary, e *Evidence) { e.Clamped = 2 }, true,
			"clamped: 2 latency values above 3600 s counted as 3600 s",
		},
		"few samples": {
			func(s *result.Summary, e *Evidence) { s.Load.Requests = 420 }, true,
			"too few samples: 420 latency values; p99 needs 1,000",
		},
		"waiting to be sent": {
			func(s *result.Summary, _ *Evidence) { s.LatencyMS.P99 = resulttest.Ptr(812.0) }, true,
			"waiting to be sent: p99 is 812 ms from the due time and 9.83 ms from the send; quote the former",
		},
		"drift": {
			func(_ *result.Summary, e *Evidence) {
				e.Intervals = resulttest.Intervals(1000, 1010, 950, 900, 850, 840)
			}, true,
			"not steady: 1,005/s in the first third of the run, 845/s in the last",
		},
		"shared host": {
			func(s *result.Summary, _ *Evidence) { s.Run.SharedHost = true }, true,
			"shared host: load, app and store share a machine; quote CPU per saga, not the rate",
		},
		"others": {
			func(s *result.Summary, e *Evidence) { s.Run.SharedHost, e.HostBusy = true, resulttest.Ptr(0.95) }, true,
			"others: 1.10 of the machine's 2 cores were used by other processes",
		},
		"steal": {
			func(_ *result.Summary, e *Evidence) { e.HostSteal = resulttest.Ptr(0.034) }, true,
			"steal: the hypervisor took 3.40% of the machine's CPU time",
		},
		"governor": {
			func(s *result.Summary, _ *Evidence) { s.Environment.Governor = resulttest.Ptr("powersave") }, true,
			`governor: the CPU frequency governor is "powersave"; latency may fall as load rises`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := quietRun(), goodEvidence()
			c.spoil(&s, &e)
			got := Judge(s, e)
			require.Contains(t, got.Warnings, c.want)
			require.Equal(t, c.valid, got.Valid)
		})
	}
}

func TestJudge_ErrorsAloneAreNoOverload(t *testing.T) {
	t.Parallel()
	s := quietRun()
	s.Load.Errors = s.Load.Requests / 20
	s.Load.AchievedPerS *= 0.95
	require.False(t, s.Load.Overloaded())
	s.Load.AchievedPerS *= 0.95
	require.True(t, s.Load.Overloaded())
}

func TestJudge_UnknownIsNoFault(t *testing.T) {
	t.Parallel()
	got := Judge(quietRun(), Evidence{Planned: 10 * time.Second})
	require.Equal(t, result.Validity{Valid: true, Warnings: []string{}}, got)
}

func TestJudge_OneBadSecondOrAShortLastOneIsNoDrift(t *testing.T) {
	t.Parallel()
	e := goodEvidence()
	e.Intervals = resulttest.Intervals(900, 905, 900, 900, 895, 900, 900, 10, 900)
	e.Intervals = append(e.Intervals, result.Interval{Length: 20 * time.Millisecond, Acknowledged: 1})
	require.Empty(t, Judge(quietRun(), e).Warnings)
}
