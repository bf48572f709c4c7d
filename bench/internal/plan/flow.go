package plan

import (
	"fmt"
	"strconv"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

const (
	heldUnfinished = "held by unfinished sagas"
	heldFinished   = "held by finished sagas"
)

// sagas is what sagas take up: those under way at the peak, by Little's law, and those that
// have ended and are kept.
func (s sizing) sagas() []Line {
	kept := s.e.keeps()
	unfinished := Line{
		What: heldUnfinished, Unit: "bytes", Basis: "the mean latency was not measured",
		Caveat: "at the peak; one is taken to hold as much as a finished one does", Extrapolated: s.peak > sameRate*s.held.rate,
	}
	if took := mean(s.held.steps, latency); took != nil {
		branches := float64(s.e.scenario.Steps) * s.d.BranchLatency.Seconds()
		unfinished.Basis = fmt.Sprintf("mean latency %s ms at %s/s", format.Number(*took), format.Number(s.held.rate))
		if branches > 0 {
			unfinished.Basis += fmt.Sprintf(", and %s of %s", format.Plural(int64(s.e.scenario.Steps), "branch call"), format.Duration(s.d.BranchLatency))
		}
		unfinished.Value = times(&kept.value, s.peak*(*took/1000+branches))
	}
	if unfinished.Basis += "; " + kept.basis; !kept.known {
		unfinished.Value = nil
	}
	finished := kept.line(heldFinished, "bytes", s.d.RatePerS*s.retention.Seconds())
	if s.retention == 0 {
		none := 0.0
		return []Line{unfinished, {What: heldFinished, Unit: "bytes", Value: &none, Basis: "they are deleted at once"}}
	}
	finished.Caveat = fmt.Sprintf("of %s at the average rate; in memory for Redis, otherwise on disk", format.Duration(s.retention))
	return []Line{unfinished, finished}
}

// keeps is what a saga takes up, which is the same at any rate.
func (e evidence) keeps() figure {
	var sum, weight float64
	for _, s := range e.sources {
		for _, m := range s.tried {
			if x := memory(m); x != nil {
				sum, weight = sum+*x*float64(m.Load.Requests), weight+float64(m.Load.Requests)
			}
		}
	}
	if weight == 0 {
		return figure{basis: "a finished saga keeps was not measured"}
	}
	x := sum / weight
	return figure{value: x, known: true, basis: fmt.Sprintf("a finished saga keeps %s bytes (%s)", format.Number(x), e.names())}
}

// memoryOfRedis is what its machine has to have: all sagas are in memory. Of a cluster it is
// what all masters have together. masters is nil if their number is unknown.
func (s sizing) memoryOfRedis(sagas []Line, masters *int) []Line {
	if !s.e.oneCore() || sagas[0].Value == nil || sagas[1].Value == nil {
		return nil
	}
	used := *sagas[0].Value + *sagas[1].Value
	resident := Line{What: "resident memory of the store", Unit: "bytes", Value: &used, Basis: "what sagas hold; how much of it is resident was not measured with " + format.Bytes(s.e.leastUsed()) + " in use or more", Caveat: "allocators take more than is used"}
	if share, of := s.e.resident(); share > 0 {
		x := used * share
		resident.Value, resident.Caveat = &x, ""
		resident.Basis = fmt.Sprintf("what sagas hold, and %s times that is resident, measured with %s in use (%s)", format.Number(share), format.Bytes(of), s.e.names())
	}
	fork := Line{
		What: "reserve for fork", Unit: "bytes", Value: resident.Value, Basis: "the worst case: each page is written, and so copied, while a child rewrites the log or writes a snapshot",
		Caveat: "0 without append-only file, snapshots and replicas",
	}
	backlog := Line{What: "replication backlog", Unit: "bytes", Basis: "repl-backlog-size of the measured store"}
	total := 2 * *resident.Value
	if size, err := strconv.ParseFloat(s.e.store.Settings["repl-backlog-size"], 64); err == nil {
		if masters != nil && *masters > 1 {
			size *= float64(*masters)
			backlog.Basis += fmt.Sprintf(", for each of %d masters", *masters)
		}
		backlog.Value = &size
		total += size
	} else {
		backlog.Basis = "repl-backlog-size was not read from the measured store"
	}
	sum := Line{What: "memory of the store", Unit: "bytes", Value: &total, Basis: "the sum of the three above"}
	if s.e.store.Masters() > 0 {
		sum.Basis += ", of all masters; a replica needs as much as its master"
	}
	if s.e.store.Replicated() {
		sum.Basis += ", of the primary; its replica needs as much"
	}
	has, of, machines := float64(s.e.memory), "", 1.0
	if masters != nil && *masters > 1 {
		of, machines = fmt.Sprintf("for each of %d masters ", *masters), float64(*masters)
	}
	if s.e.shared && has > 0 && total/machines > has {
		sum.Caveat = fmt.Sprintf("%smore than the %s GB of the measured machine: a shorter retention needs less", of, format.Number(has/1e9))
	}
	return []Line{resident, fork, backlog, sum}
}

// leastUsed is the memory in use from which on the few MB that each server takes for itself do
// not matter.
func (e evidence) leastUsed() float64 {
	servers, _ := strconv.Atoi(e.store.Settings[result.KeyReplicas])
	if servers += max(1, e.store.Masters()); e.store.Replicated() {
		servers++
	}
	return 64 << 20 * float64(servers)
}

// resident is how much memory a Redis has taken for each byte it uses, and of how many in
// use: the most that were measured. It is 0 if that was too little to tell.
func (e evidence) resident() (share, used float64) {
	used = e.leastUsed()
	for _, s := range e.sources {
		for _, m := range s.tried {
			rss := m.Resources.StoreRSSBytes
			in := m.Resources.StoreUsedBytes
			if x := ratio(rss, in, 1); x != nil && *in >= used {
				share, used = *x, *in
			}
		}
	}
	return share, used
}

// flows are what passes each second at the peak; the store, or an embedded one with its
// host, has the rate each.
func (s sizing) flows(each float64) []Line {
	line := func(what, unit, name, per string, of measure) Line {
		return s.e.at(each, name, per, of).line(what, unit, s.peak)
	}
	disk := line("written to disk", "bytes/s", "written to disk per saga", " bytes", written)
	synced := line("store fsyncs", "/s", "fsyncs per saga", "", fsyncs)
	for _, l := range []*Line{&disk, &synced} {
		l.Caveat = s.e.both()
		if l.Value != nil && s.e.disk != nil {
			l.Basis += ", on " + s.e.disk.String()
		}
	}
	return []Line{
		disk, synced,
		line("network to the store", "bytes/s", "to the store per saga", " bytes", bytesIn),
		line("network from the store", "bytes/s", "from the store per saga", " bytes", bytesOut),
	}
}
