package validity

import (
	"slices"
	"strings"
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
			LoadCoresUsable: resulttest.Ptr(2.0), LoadThrottled: resulttest.Ptr(0.0), StoreThrottled: resulttest.Ptr(0.0),
		},
		HostCores:  2,
		StoreSagas: resulttest.Ptr[int64](134_900), Leftovers: resulttest.Ptr[int64](0),
		After: resulttest.Ptr(resulttest.ClosedRun().Run.Store),
	}
}

func quietRun() result.Summary {
	s := resulttest.ClosedRun()
	s.Run.SharedHost = false
	s.Load = result.Load{
		Mode: result.Open, InFlight: 1000, OfferedPerS: resulttest.Ptr(11_250.0), AchievedPerS: 11_240,
		Requests: 112_467, LatenessMS: lateness(0.9), Delayed: resulttest.Ptr[int64](0), Dropped: resulttest.Ptr[int64](0),
	}
	return s
}

func lateness(p99 float64) *result.Latency {
	return &result.Latency{P50: resulttest.Ptr(p99 / 2), P90: resulttest.Ptr(p99 * 0.9), P99: &p99, Max: resulttest.Ptr(2 * p99)}
}

func p99Of(ms float64) result.SLO {
	return result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: ms}}}
}

func TestJudge_GoodRunHasNoWarnings(t *testing.T) {
	t.Parallel()
	require.Equal(t, result.Validity{Valid: true}, Judge(quietRun(), goodEvidence()))
	for name, change := range map[string]func(*result.Summary, *Evidence){
		"late by a timer":                  func(s *result.Summary, e *Evidence) { s.Load.LatenessMS, e.SLO = lateness(1.9), p99Of(5) },
		"late by little for its limit":     func(s *result.Summary, e *Evidence) { s.Load.LatenessMS, e.SLO = lateness(4.9), p99Of(50) },
		"delayed by the cap, but very few": func(s *result.Summary, _ *Evidence) { s.Load.Delayed = resulttest.Ptr[int64](100) },
	} {
		s, e := quietRun(), goodEvidence()
		change(&s, &e)
		require.Equal(t, result.Validity{Valid: true}, Judge(s, e), name)
	}
}

func TestJudge_SaysEachFaultWithItsNumbers(t *testing.T) {
	t.Parallel()
	closed := func(s *result.Summary) { s.Load.Mode, s.Load.OfferedPerS, s.Load.InFlight = result.Closed, nil, 64 }
	const late = "the load generator was late: it sent requests 12.0 ms after they were due (p99), with room in flight; the measured p99 is 9.83 ms"
	lateOnShared := func(load, app, store, host float64) func(*result.Summary, *Evidence) {
		return func(s *result.Summary, e *Evidence) {
			s.Run.SharedHost, s.Load.LatenessMS = true, lateness(12)
			e.LoadCores, e.AppCores, e.StoreCores, e.HostBusy = &load, &app, &store, &host
		}
	}
	because := func(v result.Validity) []string { return v.Because }
	warnings := func(v result.Validity) []string { return v.Warnings }
	notes := func(v result.Validity) []string { return v.Notes }
	for name, c := range map[string]struct {
		spoil func(*result.Summary, *Evidence)
		list  func(result.Validity) []string
		want  string
	}{
		"interrupted": {
			func(s *result.Summary, e *Evidence) { e.Incomplete, s.Run.DurationS = "interrupted", 4.2 }, because,
			"it is incomplete: interrupted; 4.20 s of 10.0 s were measured",
		},
		"interrupted, of unknown length": {
			func(_ *result.Summary, e *Evidence) { e.Incomplete, e.Planned = "interrupted", 0 }, because,
			"it is incomplete: interrupted",
		},
		"probe failed": {
			func(_ *result.Summary, e *Evidence) { e.Failures = []string{"the app's CPU: no such process"} }, warnings,
			"not measured: the app's CPU: no such process",
		},
		"lost": {
			func(s *result.Summary, _ *Evidence) { s.Check.Lost = resulttest.Ptr[int64](3) }, because,
			"the audit found 3 of 134,900 acknowledged sagas lost",
		},
		"lost by a cluster": {
			func(s *result.Summary, _ *Evidence) {
				s.Check.Lost, s.Run.Store.Settings = resulttest.Ptr[int64](3), map[string]string{"masters": "3"}
			}, because,
			"the audit found 3 of 134,900 acknowledged sagas lost; a replica that takes over lacks what had not reached it, unless redis.replicas is 1 or more",
		},
		"both outcomes": {
			func(s *result.Summary, _ *Evidence) { s.Check.BothOutcomes = resulttest.Ptr[int64](1) }, because,
			"the audit found 1 of 134,900 acknowledged sagas with both outcomes",
		},
		"uncompensated": {
			func(s *result.Summary, _ *Evidence) { s.Check.Uncompensated = resulttest.Ptr[int64](2) }, because,
			"the audit found 2 of 134,900 acknowledged sagas uncompensated",
		},
		"audit": {
			func(_ *result.Summary, e *Evidence) { e.Findings = []string{"saga g1: its index entry is missing"} }, because,
			"the audit found: saga g1: its index entry is missing",
		},
		"background work": {
			func(s *result.Summary, e *Evidence) {
				s.CostPerSaga.StoreBytesWritten, e.StoreDebtBytes = resulttest.Ptr(1000.0), resulttest.Ptr(float64(64<<20))
			}, notes,
			"background work: 64.0 MiB of compactions, checkpoints or rewrites were put off until after the measurement (59.7% of what was written); a longer one pays more of it",
		},
		"not audited": {
			func(s *result.Summary, _ *Evidence) { s.Check = result.Check{Acknowledged: 134_900} }, warnings,
			"not audited: the store was not searched for the 134,900 sagas that were acknowledged",
		},
		"lost writes": {
			func(s *result.Summary, _ *Evidence) { s.Check.LostWrites = 2 }, warnings,
			"lost writes: coordinators found 2 times that the store lacked what it had acknowledged: it crashed, or failed over to a replica that was behind",
		},
		"unfinished": {
			func(s *result.Summary, _ *Evidence) { s.Check.Unfinished = resulttest.Ptr[int64](1) }, warnings,
			"unfinished: 1 saga had not ended when the store was audited",
		},
		"nothing sent": {
			func(s *result.Summary, _ *Evidence) { s.Load.Requests = 0 }, because,
			"no request was sent in the measured part",
		},
		"errors above the budget": {func(s *result.Summary, _ *Evidence) {
			s.Load.Errors, s.Load.ErrorsByKind = 225, map[string]int64{"timeout": 25, "http 500": 200}
		}, because, "225 of 112,467 requests failed (0.200%; 0.100% are allowed): 200 × http 500, 25 × timeout"},
		"errors within the budget": {func(s *result.Summary, _ *Evidence) {
			s.Load.Errors, s.Load.ErrorsByKind = 112, map[string]int64{"timeout": 112}
		}, warnings, "errors: 112 of 112,467 requests failed (0.100%; 0.100% are allowed): 112 × timeout"},
		"store counts fewer": {
			func(_ *result.Summary, e *Evidence) { e.StoreSagas = resulttest.Ptr[int64](134_899) }, because,
			"clients got answers for 134,900 sagas, the store counts 134,899",
		},
		"store counts more": {
			func(_ *result.Summary, e *Evidence) { e.StoreSagas = resulttest.Ptr[int64](135_900) }, warnings,
			"counts differ: the store counts 135,900 sagas, clients got answers for 134,900 and 0 errors: another client uses the store, or requests of the warm-up failed",
		},
		"leftovers": {
			func(_ *result.Summary, e *Evidence) { e.Leftovers = resulttest.Ptr[int64](7) }, warnings,
			"leftovers: the store held 7 sagas before the run",
		},
		"setting changed": {
			func(_ *result.Summary, e *Evidence) {
				e.After.Settings = map[string]string{"sync": "false", "cache": "64 MiB"}
			}, because,
			`a setting of the store changed during the run: sync "true", then "false"`,
		},
		"durability changed": {
			func(_ *result.Summary, e *Evidence) { e.After.Durability = "D2" }, because,
			"the durability changed during the run: D3, then D2",
		},
		"version changed": {
			func(_ *result.Summary, e *Evidence) { e.After.Version = "2.1.8" }, because,
			"the version of the store changed during the run: 2.1.7, then 2.1.8",
		},
		"overloaded": {
			func(s *result.Summary, _ *Evidence) { s.Load.OfferedPerS = resulttest.Ptr(12_000.0) }, warnings,
			"overloaded: 11,240/s achieved of 12,000/s offered (93.7%); the latencies depend on the length of the run: do not quote them",
		},
		"late generator": {
			func(s *result.Summary, _ *Evidence) { s.Load.LatenessMS = lateness(12) }, because,
			late,
		},
		"late, but most of the latency is the system's": {
			func(s *result.Summary, _ *Evidence) {
				s.Load.LatenessMS, s.LatencyMS.P99 = lateness(4.9), resulttest.Ptr(25.0)
			}, warnings,
			"the load generator was late: it sent requests 4.90 ms after they were due (p99), with room in flight; the measured p99 is 25.0 ms; the latencies include that wait",
		},
		"the service level was violated because it was late": {
			func(s *result.Summary, e *Evidence) { s.Load.LatenessMS, e.SLO = lateness(5.1), p99Of(5) }, because,
			"the load generator was late: it sent requests 5.10 ms after they were due (p99), with room in flight; the limit of the latency is 5.00 ms",
		},
		"violated, and it was late, but not for that": {
			func(s *result.Summary, e *Evidence) { s.Load.LatenessMS, e.SLO = lateness(3), p99Of(5) }, warnings,
			"the load generator was late: it sent requests 3.00 ms after they were due (p99), with room in flight; the limit of the latency is 5.00 ms; the latencies include that wait",
		},
		"met although it was late": {
			func(s *result.Summary, e *Evidence) { s.Load.LatenessMS, e.SLO = lateness(5.1), p99Of(50) }, warnings,
			"the load generator was late: it sent requests 5.10 ms after they were due (p99), with room in flight; the limit of the latency is 50.0 ms; the latencies include that wait",
		},
		"late, few requests": {
			func(s *result.Summary, e *Evidence) {
				s.Load.LatenessMS, e.SLO = &result.Latency{P90: resulttest.Ptr(7.1), Max: resulttest.Ptr(9.0)}, p99Of(5)
			}, because,
			"the load generator was late: it sent requests 7.10 ms after they were due (p90), with room in flight; the limit of the latency is 5.00 ms",
		},
		"the cap on requests in flight": {
			func(s *result.Summary, _ *Evidence) { s.Load.Delayed = resulttest.Ptr[int64](1200) }, warnings,
			"in flight: the cap of 1,000 delayed 1,200 requests (1.07%)",
		},
		"late generator on a machine that app and store fill": {
			lateOnShared(0.5, 0.75, 0.5, 0.9), warnings,
			late + "; app and store used its cores, and the latencies include that wait (in cores: load 0.50, app 0.75, store 0.50)",
		},
		"late generator on a machine with room": {
			lateOnShared(0.25, 0.75, 0.5, 0.9), because,
			late,
		},
		"late generator, app on another machine": {
			lateOnShared(0.5, 1.5, 0.1, 0.4), because,
			late,
		},
		"late generator that fills the part of the machine that it may use": {
			func(s *result.Summary, e *Evidence) {
				lateOnShared(0.49, 0.9, 0.5, 0.95)(s, e)
				e.LoadCoresUsable = resulttest.Ptr(0.5)
			}, because,
			late,
		},
		"late generator that fills the machine": {
			lateOnShared(1.25, 0.5, 0.1, 0.95), because,
			late,
		},
		"busy generator": {
			func(_ *result.Summary, e *Evidence) { e.LoadCores = resulttest.Ptr(1.7) }, warnings,
			"load generator: it keeps 1.70 of the 2 cores that it may use busy (85.0%); its waiting for a core is in the latencies",
		},
		"pauses": {
			func(_ *result.Summary, e *Evidence) { e.GCPause = 200 * time.Millisecond }, warnings,
			"load generator: garbage collection stopped it for 200 ms of 10.0 s (2.00%)",
		},
		"store's core": {
			func(s *result.Summary, e *Evidence) { closed(s); e.StoreCores = resulttest.Ptr(0.97) }, notes,
			"limit: store CPU: the store keeps 97% of the one core busy on which it runs commands",
		},
		"machine full": {
			func(s *result.Summary, e *Evidence) { closed(s); e.HostBusy = resulttest.Ptr(0.99) }, warnings,
			"limit: load generator: the cores of its machine are 99% busy (by itself 0.20 cores)",
		},
		"one core": {
			func(s *result.Summary, e *Evidence) { closed(s); e.BusiestCore = resulttest.Ptr(0.98) }, warnings,
			"limit: load generator: one core of its machine is 98% busy (by itself 0.20 cores)",
		},
		"waiting": {
			func(s *result.Summary, _ *Evidence) { closed(s) }, notes,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting; more in flight may reach a higher rate",
		},
		"waiting for the disk": {
			func(s *result.Summary, e *Evidence) {
				closed(s)
				e.StoreFsyncsPerS = resulttest.Ptr(s.Load.AchievedPerS / 8)
			}, notes,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting, and the store fsyncs 1,405 times/s, 8.00 sagas each; more in flight may reach a higher rate",
		},
		"a disk that nobody waits for": {
			func(s *result.Summary, e *Evidence) { closed(s); e.StoreFsyncsPerS = resulttest.Ptr(1.0) }, notes,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting; more in flight may reach a higher rate",
		},
		"connections": {
			func(s *result.Summary, e *Evidence) {
				closed(s)
				e.StoreCallsInFlight, e.StoreConnWaits, e.StoreConns = resulttest.Ptr(3.9), resulttest.Ptr(2.0), resulttest.Ptr(2.0)
			}, notes,
			"limit: connections to the store: the 2 that the app may have are in use 95% of the time, and of 3.9 batches in flight 2.0 wait for one",
		},
		"connections that the app accepts": {
			func(s *result.Summary, e *Evidence) { closed(s); e.AppAcceptWait = resulttest.Ptr(0.95) }, notes,
			"limit: connections to the app: all that it accepts are in use, and clients are turned away 95% of the time",
		},
		"connections that the server refuses": {
			func(s *result.Summary, e *Evidence) {
				s.Load.Errors, s.Load.ErrorsByKind, e.StoreServerConns = 2000, map[string]int64{"http 503": 2000}, resulttest.Ptr(1.0)
			}, because,
			"2,000 of 112,467 requests failed (1.78%; 0.100% are allowed): 2,000 × http 503; 100% of the connections that the store's server allows are open, and it refuses more",
		},
		"clamped": {
			func(_ *result.Summary, e *Evidence) { e.Clamped = 2 }, warnings,
			"clamped: 2 latency values above 3600 s counted as 3600 s",
		},
		"few samples": {
			func(s *result.Summary, e *Evidence) { s.Load.Requests = 420 }, warnings,
			"too few samples: 420 latency values; p99 needs 1,000",
		},
		"waiting to be sent": {
			func(s *result.Summary, _ *Evidence) { s.LatencyMS.P99 = resulttest.Ptr(812.0) }, warnings,
			"waiting to be sent: p99 is 812 ms from the due time and 9.83 ms from the send; quote the former",
		},
		"waiting to be sent, at a percentile that is searched for": {
			func(s *result.Summary, e *Evidence) {
				e.SLO, s.LatencyMS.P999 = result.SLO{Latencies: []result.LatencyGoal{{Percentile: 50, MS: 1000}, {Percentile: 99.9, MS: 1000}}}, resulttest.Ptr(812.0)
			}, warnings,
			"waiting to be sent: p99.9 is 812 ms from the due time and 14.2 ms from the send; quote the former",
		},
		"few samples for a percentile that is searched for": {
			func(s *result.Summary, e *Evidence) {
				e.SLO, s.Load.Requests = result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 1000}, {Percentile: 99.9, MS: 1000}}}, 4200
			}, warnings,
			"too few samples: 4,200 latency values; p99.9 needs 10,000",
		},
		"a store that nobody knows": {
			func(s *result.Summary, e *Evidence) { closed(s); e.StoreCores, s.Run.Store.Driver = nil, "redis" }, notes,
			"limit: nothing was near its limit (most used: load generator, 50%), so latency comes from waiting; the CPU of app or store is unknown",
		},
		"used at 84%": {
			func(s *result.Summary, e *Evidence) { closed(s); e.StoreCores = resulttest.Ptr(0.84) }, notes,
			"limit: store CPU: the store keeps 84% of the one core busy on which it runs commands on average: latency comes from the moments when it is full",
		},
		"shared with some of the servers": {
			func(s *result.Summary, _ *Evidence) {
				s.Run.SharedHost, s.Run.Targets = true, []string{"http://a", "http://localhost"}
			}, warnings,
			"shared host: load, app or store share a machine; quote CPU per saga, not the rate",
		},
		"slower": {
			func(_ *result.Summary, e *Evidence) { e.Intervals = seconds(4, 5, 5, 5, 6, 7, 7, 8, 9) }, warnings,
			"not steady: the seconds' p99 is 5.00 ms in the first third of the run, 8.00 ms in the last (medians)",
		},
		"slower, with few requests": {
			func(_ *result.Summary, e *Evidence) {
				e.Intervals = seconds(5, 5, 5, 7, 8, 8)
				e.Intervals[1].Acknowledged = 900
			}, warnings,
			"not steady: the seconds' p50 is 2.50 ms in the first third of the run, 4.00 ms in the last (medians)",
		},
		"drift": {
			func(s *result.Summary, e *Evidence) {
				closed(s)
				e.Intervals = resulttest.Intervals(1000, 1010, 950, 900, 850, 840)
			}, warnings,
			"not steady: 1,005/s in the first third of the run, 845/s in the last",
		},
		"shared host": {
			func(s *result.Summary, _ *Evidence) { s.Run.SharedHost = true }, warnings,
			"shared host: load, app and store share a machine; quote CPU per saga, not the rate",
		},
		"others": {
			func(s *result.Summary, e *Evidence) { s.Run.SharedHost, e.HostBusy = true, resulttest.Ptr(0.95) }, warnings,
			"others: 1.10 of the machine's 2 cores were used by other processes",
		},
		"steal": {
			func(_ *result.Summary, e *Evidence) { e.HostSteal = resulttest.Ptr(0.034) }, warnings,
			"steal: the hypervisor took 3.40% of the machine's CPU time",
		},
		"throttled": {
			func(_ *result.Summary, e *Evidence) {
				e.LoadThrottled, e.AppThrottled, e.StoreThrottled = resulttest.Ptr(0.02), resulttest.Ptr(0.01), resulttest.Ptr(0.985)
			}, warnings,
			"throttled: a cgroup's CPU quota stopped the load generator in 2.00%, the store in 98.5% of the quota's periods",
		},
		"memory that a server gave back": {
			func(s *result.Summary, _ *Evidence) {
				s.CostPerSaga.StoreMemoryBytes, s.CostPerSaga.NotMeasurable = nil, []string{"store_memory_bytes"}
			}, notes,
			"not measurable: kept in the store: it went down during the run, so what a saga adds is below what can be measured",
		},
		"governor": {
			func(s *result.Summary, _ *Evidence) { s.Environment.Governor = resulttest.Ptr("powersave") }, notes,
			`governor: the CPU frequency governor is "powersave"; latency may fall as load rises`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := quietRun(), goodEvidence()
			c.spoil(&s, &e)
			got := Judge(s, e)
			require.Contains(t, c.list(got), c.want)
			require.Equal(t, len(got.Because) == 0, got.Valid)
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

// seconds are intervals with these p99, in ms, and half of that as p50.
func seconds(p99 ...int) (intervals []result.Interval) {
	for _, ms := range p99 {
		d := time.Duration(ms) * time.Millisecond
		intervals = append(intervals, result.Interval{Length: time.Second, Acknowledged: 1000, P50: d / 2, P99: d})
	}
	return intervals
}

// What looks like a fault, and is none.
func TestJudge_SaysNothingThatIsNotSo(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*result.Summary, *Evidence){
		"seconds that differ by chance": func(_ *result.Summary, e *Evidence) { e.Intervals = seconds(4, 9, 5, 5, 5, 5, 9, 4, 8) },
		"a rate that the profile fixes": func(_ *result.Summary, e *Evidence) {
			e.Intervals = resulttest.Intervals(1000, 1000, 900, 900, 800, 800)
		},
		"a ramp": func(s *result.Summary, e *Evidence) {
			s.Load.Profile, e.Intervals = "100/s..900/s", seconds(5, 5, 5, 9, 9, 9)
		},
		"seconds with hardly any requests": func(_ *result.Summary, e *Evidence) {
			e.Intervals = seconds(5, 5, 5, 9, 9, 9)
			e.Intervals[0].Acknowledged = 19
		},
		"nothing to audit": func(s *result.Summary, e *Evidence) { s.Check, e.StoreSagas = result.Check{}, nil },
		"a store of unknown CPU is not others": func(s *result.Summary, e *Evidence) {
			s.Run.Store.Driver, e.StoreCores, e.HostBusy, e.After = "redis", nil, resulttest.Ptr(0.95), nil
			s.Run.SharedHost = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := quietRun(), goodEvidence()
			spoil(&s, &e)
			got := Judge(s, e)
			got.Warnings = slices.DeleteFunc(got.Warnings, func(w string) bool { return strings.HasPrefix(w, "shared host: ") })
			require.Empty(t, slices.Concat(got.Because, got.Warnings, got.Notes))
		})
	}
}

func TestJudge_UnknownIsNoFault(t *testing.T) {
	t.Parallel()
	got := Judge(quietRun(), Evidence{Planned: 10 * time.Second})
	require.Equal(t, result.Validity{Valid: true}, got)
}

func TestJudge_OneBadSecondOrAShortLastOneIsNoDrift(t *testing.T) {
	t.Parallel()
	e := goodEvidence()
	e.Intervals = resulttest.Intervals(900, 905, 900, 900, 895, 900, 900, 10, 900)
	e.Intervals = append(e.Intervals, result.Interval{Length: 20 * time.Millisecond, Acknowledged: 1})
	s := quietRun()
	s.Load.Mode, s.Load.OfferedPerS = result.Closed, nil
	require.Empty(t, Judge(s, e).Warnings)
}
