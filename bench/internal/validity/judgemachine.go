package validity

import (
	"fmt"
	"math"
	"strings"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// lateGenerator begins what is said of a load generator that could not send in time.
const lateGenerator = "late load generator"

// generator refuses a result that shows the load generator rather than the
// system.
func (j *judgement) generator() {
	l, e := j.s.Load, j.e
	if l.Requests > 0 && float64(e.LateOwn) > lateShare*float64(l.Requests) {
		late := fmt.Sprintf(lateGenerator+": %s of %s requests left more than %d ms late though more could have been in flight",
			format.Count(e.LateOwn), format.Count(l.Requests), result.LateAfter.Milliseconds())
		if j.crowded() {
			j.warn("%s; app and store had its cores, and the latencies have that wait in them%s", late, j.whoseCores())
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

// crowded tells whether the system under test is what kept the load generator from
// its cores: they share a machine and fill it, and most of that is app and store.
// Then the machine has no more to give, and says so in the latency from the due time.
func (j *judgement) crowded() bool {
	ours, ok := j.ours()
	return ok && ours > crowdedShare*float64(j.e.LoadCoresUsable) && *j.e.LoadCores < ours/2
}

// ours is how many cores load, app and store used of a machine that they share.
func (j *judgement) ours() (cores float64, ok bool) {
	e := j.e
	if !j.s.Run.SharedHost || e.LoadCores == nil || e.AppCores == nil || e.LoadCoresUsable == 0 {
		return 0, false
	}
	cores = *e.LoadCores + *e.AppCores
	if e.StoreCores != nil {
		cores += *e.StoreCores
	}
	// Where that is more than the machine gave, some of it was another machine's.
	elsewhere := e.HostBusy != nil && cores > moreThanShare**e.HostBusy*float64(e.LoadCoresUsable)
	return cores, !elsewhere
}

// limit says what keeps the rate from being higher, if the rate was the system's to
// choose.
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

// syncs says how often requests wait for the store's disk, if they do: a store
// that syncs in the background does so less than once for those in flight.
func (j *judgement) syncs() string {
	l, perS := j.s.Load, j.e.StoreFsyncsPerS
	if perS == nil || *perS == 0 || l.AchievedPerS / *perS > float64(l.InFlight) {
		return ""
	}
	return fmt.Sprintf(", and the store fsyncs %s times a second, %s sagas at once", format.Number(*perS), format.Number(l.AchievedPerS / *perS))
}

func (j *judgement) whoseCores() string {
	var parts []string
	for _, p := range []struct {
		name  string
		cores *float64
	}{{"load", j.e.LoadCores}, {"app", j.e.AppCores}, {"store", j.e.StoreCores}} {
		if p.cores != nil {
			parts = append(parts, fmt.Sprintf("%s %s", p.name, format.Number(*p.cores)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (in cores: " + strings.Join(parts, ", ") + ")"
}

func (j *judgement) samples() {
	if n := j.e.Clamped; n > 0 {
		j.warn("clamped: %s beyond %d s counted as that long", format.Plural(n, "latency value"), result.HighestUS/1_000_000)
	}
	acknowledged := j.s.Load.Requests - j.s.Load.Errors
	if acknowledged < result.SamplesFor(99) {
		j.warn("too few samples: %s; p99 needs %s", format.Plural(acknowledged, "latency value"), format.Count(result.SamplesFor(99)))
	}
}

// omission says when waiting to be sent was a part of the latency: only the
// latency from the due time shows it.
func (j *judgement) omission() {
	due, sent := j.s.LatencyMS.P99, j.s.ServiceMS.P99
	if due == nil || sent == nil || *due-*sent < partLeastMS || *due-*sent < partShare**sent {
		return
	}
	j.warn("waiting to be sent: p99 is %s ms from the due time and %s ms from the send; quote the former",
		format.Number(*due), format.Number(*sent))
}

// drift compares the medians of the first and the last third of the intervals:
// a single bad second moves neither.
func (j *judgement) drift() {
	if j.s.Load.Changes() {
		return // as was asked for
	}
	var rates []float64
	for _, i := range j.e.Intervals {
		if i.Length >= result.WholeInterval {
			rates = append(rates, i.PerS())
		}
	}
	if len(rates) < driftLeast {
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
		j.warn("shared host: load, app and store share a machine%s; the rate is relative only, CPU per saga holds better", j.sharedCPUs())
	}
	j.others()
	if steal := j.e.HostSteal; steal != nil && *steal > stealShare {
		j.warn("steal: the hypervisor took %s of the machine's CPU time", format.Percent(*steal))
	}
	if g := j.s.Environment.Governor; g != nil && *g != "performance" {
		j.warn("governor: CPU frequency is governed by %q; latency may fall as load rises", *g)
	}
}

// others looks for processes that have nothing to do with the run.
func (j *judgement) others() {
	ours, ok := j.ours()
	if !ok || j.e.HostBusy == nil {
		return
	}
	cores := float64(j.e.LoadCoresUsable)
	if rest := *j.e.HostBusy*cores - ours; rest > othersShare*cores {
		j.warn("others: %s of the machine's %s were used by neither load, app nor store", format.Number(rest), format.Plural(int64(cores), "core"))
	}
}
