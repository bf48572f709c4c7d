package validity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// lateGenerator begins the finding of a load generator that did not send in time.
const lateGenerator = "the load generator was late"

// generator makes a result invalid that shows the load generator instead of the system.
func (j *judgement) generator() {
	e := j.e
	if late := j.lateness(); late != "" {
		switch {
		case j.systemFillsMachine():
			j.warn("%s; app and store used its cores, and the latencies include that wait%s", late, limit.CoresByProcess(e.Resources))
		case j.latenessDecides():
			j.refuse("%s", late)
		default:
			j.warn("%s; the latencies include that wait", late)
		}
	}
	if share := j.generatorShare(); share > generatorFull && j.followed() { // else limit names the limit
		j.warn("load generator: it keeps %s of the %s cores that it may use busy (%s); its waiting for a core is in the latencies",
			format.Number(*e.LoadCores), format.Short(*e.LoadCoresUsable), format.Percent(share))
	}
	if pause := e.GCPause.Seconds(); pause > pauseShare*j.s.Run.DurationS && j.s.Run.DurationS > 0 {
		j.warn("load generator: garbage collection stopped it for %s ms of %s s (%s)",
			format.Number(1000*pause), format.Number(j.s.Run.DurationS), format.Percent(pause/j.s.Run.DurationS))
	}
}

// generatorShare is how busy the load generator keeps the cores that it may use; 0 if that
// is unknown.
func (j *judgement) generatorShare() float64 {
	e := j.e
	if e.LoadCores == nil || e.LoadCoresUsable == nil || *e.LoadCoresUsable == 0 {
		return 0
	}
	return *e.LoadCores / *e.LoadCoresUsable
}

// latenessDecides reports whether the latency may be that of the load generator. It is not if
// the service level was met all the same, or would be violated without its lateness, too.
// Without a service level, it is if much of the latency may be lateness.
func (j *judgement) latenessDecides() bool {
	l := j.s.Load.LatenessMS
	if len(j.e.SLO.Latencies) == 0 {
		return *cmp.Or(l.P99, l.P90) > latenessMost**cmp.Or(j.s.LatencyMS.P99, j.s.LatencyMS.P90)
	}
	for _, goal := range j.e.SLO.Latencies {
		ms, late := j.s.LatencyMS.At(goal.Percentile), cmp.Or(l.At(goal.Percentile), l.P90)
		if ms != nil && late != nil && *ms > goal.MS && *ms-*late <= goal.MS {
			return true
		}
	}
	return false
}

// lateness describes a load generator that sent too late for the latencies that it
// measured. It is empty if it did not. Few requests have no p99.
func (j *judgement) lateness() string {
	l := j.s.Load.LatenessMS
	if l == nil {
		return ""
	}
	for _, goal := range j.e.SLO.Latencies {
		late := l.At(goal.Percentile)
		if late == nil {
			goal.Percentile, late = 90, l.P90
		}
		if tooLate(late, goal.MS) {
			return lateText(*late, goal.Name(), "limit of the latency", goal.MS)
		}
	}
	if len(j.e.SLO.Latencies) > 0 {
		return ""
	}
	late, measured, name := l.P99, j.s.LatencyMS.P99, "p99"
	if late == nil || measured == nil {
		late, measured, name = l.P90, j.s.LatencyMS.P90, "p90"
	}
	if measured == nil || !tooLate(late, *measured) {
		return ""
	}
	return lateText(*late, name, "measured "+name, *measured)
}

func tooLate(late *float64, ofMS float64) bool {
	return late != nil && *late > max(lateLeastMS, lateShare*ofMS)
}

func lateText(late float64, percentile, of string, ms float64) string {
	return fmt.Sprintf(lateGenerator+": it sent requests %s ms after they were due (%s), with room in flight; the %s is %s ms",
		format.Number(late), percentile, of, format.Number(ms))
}

// delayed warns if requests waited because the limit of requests in flight was reached.
func (j *judgement) delayed() {
	l := j.s.Load
	if l.Delayed == nil || float64(*l.Delayed) <= delayedShare*float64(l.Requests) {
		return
	}
	j.warn("in flight: the cap of %s delayed %s (%s)", format.Count(int64(l.InFlight)),
		format.Plural(*l.Delayed, "request"), format.Percent(float64(*l.Delayed)/float64(l.Requests)))
}

// systemFillsMachine reports whether app and store kept the load generator from its
// cores: the three share a machine and fill it, and most of that is app and store. Then
// the machine has no more to give, and the latency from the due time shows it. A load
// generator that fills the part of it that it may use is late by itself.
func (j *judgement) systemFillsMachine() bool {
	cores, ok := j.runCores()
	return ok && cores > fullMachineShare*float64(j.e.HostCores) && *j.e.LoadCores < cores/2 && j.generatorShare() <= generatorFull
}

// runCores returns the cores that load, app and store used of a machine that they share.
// ok is false if they do not share one, or if their cores are unknown.
func (j *judgement) runCores() (cores float64, ok bool) {
	e := j.e
	if !j.s.Run.SharedHost || e.LoadCores == nil || e.AppCores == nil || e.HostCores == 0 {
		return 0, false
	}
	cores = *e.LoadCores + *e.AppCores
	if e.StoreCores != nil {
		cores += *e.StoreCores
	}
	if e.HostBusy == nil {
		return cores, true
	}
	gave := *e.HostBusy
	if e.HostSteal != nil { // kernels differ in whether a process is charged for it
		gave += *e.HostSteal
	}
	// More cores than this machine gave: one of the three ran on another machine, too.
	return cores, cores <= moreThanShare*gave*float64(e.HostCores)
}

// followed reports whether the load was at a fixed rate that the system followed.
func (j *judgement) followed() bool {
	return j.s.Load.Mode == result.Open && !j.s.Load.Overloaded()
}

// limit names what keeps the rate from being higher, unless the system followed a fixed
// rate.
func (j *judgement) limit() {
	l, e := j.s.Load, j.e
	if j.followed() || e.HostBusy == nil {
		return
	}
	found := limit.Find(e.Resources, l.Errors, limit.Machine{Shared: j.s.Run.SharedHost})
	text := found.Evidence
	switch {
	case found.Resource != "":
		text = found.Resource + ": " + text
	case e.AppCores == nil || j.storeUnknown():
		text += "; the CPU of app or store is unknown"
	case l.Mode == result.Closed:
		text += j.syncs() + "; more in flight may reach a higher rate"
	}
	if found.Resource == limit.LoadGenerator {
		j.warn("limit: %s", text)
	} else {
		j.note("limit: %s", text)
	}
}

// storeUnknown reports whether the CPU of the store is in no figure.
func (j *judgement) storeUnknown() bool {
	return j.e.StoreCores == nil && !j.s.Run.Store.Embedded()
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
	if p := j.percentile(); acknowledged < result.SamplesFor(p) {
		j.warn("too few samples: %s; %s needs %s", format.Plural(acknowledged, "latency value"), result.LatencyGoal{Percentile: p}.Name(), format.Count(result.SamplesFor(p)))
	}
}

// percentile is the highest one that the latencies are read at.
func (j *judgement) percentile() float64 {
	highest := 0.0
	for _, goal := range j.e.SLO.Latencies {
		highest = max(highest, goal.Percentile)
	}
	return cmp.Or(highest, 99)
}

// background notes work that the store put off: a longer measurement would have paid for it.
func (j *judgement) background() {
	debt, perSaga := j.e.StoreDebtBytes, j.s.CostPerSaga.StoreBytesWritten
	if debt == nil || perSaga == nil {
		return
	}
	written := *perSaga * float64(j.s.Load.Requests-j.s.Load.Errors)
	if written > 0 && *debt > debtShare*written {
		j.note("background work: %s of compactions, checkpoints or rewrites were put off until after the measurement (%s of what was written); a longer one pays more of it",
			format.Bytes(*debt), format.Percent(*debt/written))
	}
}

// omission warns if the latency from the send hides waiting that the latency from the due
// time shows (coordinated omission).
func (j *judgement) omission() {
	p := j.percentile()
	due, sent := j.s.LatencyMS.At(p), j.s.ServiceMS.At(p)
	if due == nil || sent == nil || *due-*sent < omissionLeastMS || *due-*sent < omissionShare**sent {
		return
	}
	j.warn("waiting to be sent: %s is %s ms from the due time and %s ms from the send; quote the former",
		result.LatencyGoal{Percentile: p}.Name(), format.Number(*due), format.Number(*sent))
}

// drift compares the medians of the first and the last third of the intervals: of the
// rates in a closed loop, of the latencies in an open one, whose rate is fixed. One bad
// second changes neither.
func (j *judgement) drift() {
	if j.s.Load.Changes() {
		return // the rate was to change
	}
	var whole []result.Interval
	for _, i := range j.e.Intervals {
		if i.Length >= result.WholeInterval {
			whole = append(whole, i)
		}
	}
	if len(whole) < driftIntervals {
		return
	}
	first, last := whole[:len(whole)/3], whole[len(whole)-len(whole)/3:]
	if j.s.Load.Mode == result.Open {
		j.slower(first, last)
		return
	}
	before, after := stats.Median(each(first, result.Interval.PerS)), stats.Median(each(last, result.Interval.PerS))
	if math.Abs(after-before) > driftShare*max(before, after) {
		j.warn("not steady: %s/s in the first third of the run, %s/s in the last", format.Number(before), format.Number(after))
	}
}

// slower compares the p99 of the seconds, or their p50 if they have too few requests for
// that. The middle halves of the two thirds must lie apart: seconds differ by chance, too.
func (j *judgement) slower(first, last []result.Interval) {
	name, percentile, of := "p99", 99.0, func(i result.Interval) float64 { return i.P99.Seconds() * 1000 }
	few := func(i result.Interval) bool { return i.Acknowledged < result.SamplesFor(percentile) }
	if slices.ContainsFunc(first, few) || slices.ContainsFunc(last, few) {
		name, percentile, of = "p50", 50, func(i result.Interval) float64 { return i.P50.Seconds() * 1000 }
	}
	if slices.ContainsFunc(first, few) || slices.ContainsFunc(last, few) {
		return
	}
	before, after := each(first, of), each(last, of)
	low, high := before, after
	if stats.Median(low) > stats.Median(high) {
		low, high = high, low
	}
	from, to := stats.Median(low), stats.Median(high)
	if to-from > slowerShare*from && to-from > slowerLeastMS && stats.Quantile(low, 0.75) < stats.Quantile(high, 0.25) {
		j.warn("not steady: the seconds' %s is %s ms in the first third of the run, %s ms in the last (medians)",
			name, format.Number(stats.Median(before)), format.Number(stats.Median(after)))
	}
}

func each(intervals []result.Interval, of func(result.Interval) float64) (figures []float64) {
	for _, i := range intervals {
		figures = append(figures, of(i))
	}
	return figures
}

// costs notes what is below what can be measured.
func (j *judgement) costs() {
	c := j.s.CostPerSaga
	for _, f := range result.CostFields {
		if slices.Contains(c.NotMeasurable, f.Key) {
			j.note("not measurable: %s: it went down during the run, so what a saga adds is below what can be measured", f.Label)
		}
	}
}

func (j *judgement) surroundings() {
	if j.s.Run.SharedHost {
		all := "load, app and store"
		if len(j.s.Run.Targets) > 0 { // some of them may be elsewhere
			all = "load, app or store"
		}
		j.warn("shared host: %s share a machine%s; quote CPU per saga, not the rate", all, j.sharedCPUs())
	}
	j.others()
	j.taken()
	if g := j.s.Environment.Governor; g != nil && *g != "performance" {
		j.note("governor: the CPU frequency governor is %q; latency may fall as load rises", *g)
	}
}

// taken warns of CPU that the hypervisor, or a quota, took.
func (j *judgement) taken() {
	if steal := j.e.HostSteal; steal != nil && *steal > stealShare {
		j.warn("steal: the hypervisor took %s of the machine's CPU time", format.Percent(*steal))
	}
	var stopped []string
	for _, p := range []struct {
		name      string
		throttled *float64
	}{{"the load generator", j.e.LoadThrottled}, {"the app", j.e.AppThrottled}, {"the store", j.e.StoreThrottled}} {
		if p.throttled != nil && *p.throttled > throttledShare {
			stopped = append(stopped, p.name+" in "+format.Percent(*p.throttled))
		}
	}
	if len(stopped) > 0 {
		j.warn("throttled: a cgroup's CPU quota stopped %s of the quota's periods", strings.Join(stopped, ", "))
	}
}

// others warns of CPU used by other processes than load, app and store.
func (j *judgement) others() {
	run, ok := j.runCores()
	if !ok || j.e.HostBusy == nil || j.storeUnknown() {
		return
	}
	cores := float64(j.e.HostCores)
	if rest := *j.e.HostBusy*cores - run; rest > othersShare*cores {
		j.warn("others: %s of the machine's %s were used by other processes", format.Number(rest), format.Plural(int64(cores), "core"))
	}
}
