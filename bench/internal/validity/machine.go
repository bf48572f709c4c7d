package validity

import (
	"fmt"
	"math"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// lateGenerator begins the warning of a load generator that did not send in time.
const lateGenerator = "late load generator"

// generator makes a result invalid that shows the load generator instead of the system.
func (j *judgement) generator() {
	l, e := j.s.Load, j.e
	if l.Requests > 0 && float64(e.LateOwn) > lateShare*float64(l.Requests) {
		late := fmt.Sprintf(lateGenerator+": %s of %s requests were sent over %d ms late with room in flight",
			format.Count(e.LateOwn), format.Count(l.Requests), result.LateAfter.Milliseconds())
		if j.systemFillsMachine() {
			j.warn("%s; app and store used its cores, and the latencies include that wait%s", late, limit.CoresByProcess(e.Resources))
		} else {
			j.refuse("%s", late)
		}
	}
	if e.LoadCores != nil && e.LoadCoresUsable > 0 {
		if share := *e.LoadCores / float64(e.LoadCoresUsable); share > generatorFull {
			j.warn("load generator: it keeps %s of its %s busy (%s) and may be the limit",
				format.Number(*e.LoadCores), format.Plural(int64(e.LoadCoresUsable), "core"), format.Percent(share))
		}
	}
	if pause := e.GCPause.Seconds(); pause > pauseShare*j.s.Run.DurationS && j.s.Run.DurationS > 0 {
		j.warn("load generator: garbage collection stopped it for %s ms of %s s (%s)",
			format.Number(1000*pause), format.Number(j.s.Run.DurationS), format.Percent(pause/j.s.Run.DurationS))
	}
}

// systemFillsMachine reports whether app and store kept the load generator from its
// cores: the three share a machine and fill it, and most of that is app and store. Then
// the machine has no more to give, and the latency from the due time shows it.
func (j *judgement) systemFillsMachine() bool {
	cores, ok := j.runCores()
	return ok && cores > fullMachineShare*float64(j.e.LoadCoresUsable) && *j.e.LoadCores < cores/2
}

// runCores returns the cores that load, app and store used of a machine that they share.
// ok is false if they do not share one, or if their cores are unknown.
func (j *judgement) runCores() (cores float64, ok bool) {
	e := j.e
	if !j.s.Run.SharedHost || e.LoadCores == nil || e.AppCores == nil || e.LoadCoresUsable == 0 {
		return 0, false
	}
	cores = *e.LoadCores + *e.AppCores
	if e.StoreCores != nil {
		cores += *e.StoreCores
	}
	// More cores than this machine gave: one of the three ran on another machine, too.
	return cores, e.HostBusy == nil || cores <= moreThanShare**e.HostBusy*float64(e.LoadCoresUsable)
}

// limit names what keeps the rate from being higher, unless the system followed a fixed
// rate.
func (j *judgement) limit() {
	l, e := j.s.Load, j.e
	if l.Mode == result.Open && !l.Overloaded() || e.HostBusy == nil {
		return
	}
	found := limit.Find(e.Resources, l.Errors, limit.Machine{Cores: e.LoadCoresUsable, Shared: j.s.Run.SharedHost})
	text := found.Evidence
	if found.Resource != "" {
		text = found.Resource + ": " + text
	}
	if l.Mode == result.Closed && (found.Share == nil || *found.Share < limit.Full) {
		text += j.syncs() + "; more in flight may reach a higher rate"
	}
	j.warn("limit: %s", text)
}

// syncs states the fsync rate if requests wait for fsyncs. A store that syncs in the
// background does so less than once for the requests in flight.
func (j *judgement) syncs() string {
	l, perS := j.s.Load, j.e.StoreFsyncsPerS
	if perS == nil || *perS == 0 || l.AchievedPerS / *perS > float64(l.InFlight) {
		return ""
	}
	return fmt.Sprintf(", and the store fsyncs %s times/s, %s sagas each", format.Number(*perS), format.Number(l.AchievedPerS / *perS))
}

func (j *judgement) samples() {
	if n := j.e.Clamped; n > 0 {
		j.warn("clamped: %s above %d s counted as %[2]d s", format.Plural(n, "latency value"), result.HighestUS/1_000_000)
	}
	acknowledged := j.s.Load.Requests - j.s.Load.Errors
	if acknowledged < result.SamplesFor(99) {
		j.warn("too few samples: %s; p99 needs %s", format.Plural(acknowledged, "latency value"), format.Count(result.SamplesFor(99)))
	}
}

// omission warns if the latency from the send hides waiting that the latency from the due
// time shows (coordinated omission).
func (j *judgement) omission() {
	due, sent := j.s.LatencyMS.P99, j.s.ServiceMS.P99
	if due == nil || sent == nil || *due-*sent < omissionLeastMS || *due-*sent < omissionShare**sent {
		return
	}
	j.warn("waiting to be sent: p99 is %s ms from the due time and %s ms from the send; quote the former",
		format.Number(*due), format.Number(*sent))
}

// drift compares the medians of the first and the last third of the intervals. One bad
// second changes neither.
func (j *judgement) drift() {
	if j.s.Load.Changes() {
		return // the rate was to change
	}
	var rates []float64
	for _, i := range j.e.Intervals {
		if i.Length >= result.WholeInterval {
			rates = append(rates, i.PerS())
		}
	}
	if len(rates) < driftIntervals {
		return
	}
	third := len(rates) / 3
	first, last := stats.Median(rates[:third]), stats.Median(rates[len(rates)-third:])
	if math.Abs(last-first) > driftShare*max(first, last) {
		j.warn("not steady: %s/s in the first third of the run, %s/s in the last", format.Number(first), format.Number(last))
	}
}

func (j *judgement) surroundings() {
	if j.s.Run.SharedHost {
		j.warn("shared host: load, app and store share a machine%s; quote CPU per saga, not the rate", j.sharedCPUs())
	}
	j.others()
	if steal := j.e.HostSteal; steal != nil && *steal > stealShare {
		j.warn("steal: the hypervisor took %s of the machine's CPU time", format.Percent(*steal))
	}
	if g := j.s.Environment.Governor; g != nil && *g != "performance" {
		j.warn("governor: the CPU frequency governor is %q; latency may fall as load rises", *g)
	}
}

// others warns of CPU used by other processes than load, app and store.
func (j *judgement) others() {
	run, ok := j.runCores()
	if !ok || j.e.HostBusy == nil {
		return
	}
	cores := float64(j.e.LoadCoresUsable)
	if rest := *j.e.HostBusy*cores - run; rest > othersShare*cores {
		j.warn("others: %s of the machine's %s were used by other processes", format.Number(rest), format.Plural(int64(cores), "core"))
	}
}
