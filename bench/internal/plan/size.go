package plan

import (
	"fmt"
	"math"
	"sort"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// sizing is the demand with what it is sized by.
type sizing struct {
	d         Demand
	e         evidence
	held      held
	peak      float64 // sagas per second
	retention time.Duration
	least     int // app hosts: one fewer was measured, and did not carry the peak
}

// group is machines of one kind.
type group struct {
	name  string
	n     *int
	each  float64 // sagas per second, at the peak, of as many of them as were measured together
	full  float64 // what of the peak they could carry, as a multiple of it; 0: not known
	lines []Line
}

// A CPU has this many microseconds a second.
const perCore = 1e6

// hosts are those of the app: as many as carry the peak if each carries what one held. With
// CPU of its own a host may carry more than on the measured machine, but it is planned for
// no more than nearAbove times a measured rate. What an embedded store's disk bears is not
// known from CPU.
func (s sizing) hosts() group {
	together := s.e.hosts
	fromHeld := func(rate float64) int { return max(s.least, ceil(s.peak*float64(together)/rate)) }
	n := fromHeld(s.held.rate)
	l := Line{
		What: "app hosts", Unit: "hosts",
		Basis: fmt.Sprintf("%s held %s/s (%s)", format.Plural(int64(together), "host"), format.Number(s.held.rate), s.e.names()),
	}
	low, high, spans := n, n, ""
	if s.held.low != nil && *s.held.low > 0 { // 0: one of the searches held none
		low, high, spans = fromHeld(*s.held.high), fromHeld(*s.held.low), s.held.spans
	}
	capacity := 0.0 // of as many hosts as were measured, in µs of CPU a second
	share, which := s.held.usable(processor{"the machine", s.e.busy}, processor{"the app", appShare})
	cores := mean(s.held.steps, appCores)
	if cores != nil {
		l.Unit = fmt.Sprintf("hosts of %s cores", format.Short(*cores/float64(together)))
		capacity = *cores * share * perCore
	}
	if !s.e.store.Embedded() && capacity > 0 {
		byCPU, f := s.byCPU(n, 1, capacity)
		if byCPU < n && f.known {
			n, low, high, spans = byCPU, byCPU, byCPU, ""
			l.Basis = fmt.Sprintf("%s; used to %s%%: %s was that busy at %s/s, the highest held rate",
				f.basis, format.Number(100*share), which, format.Number(s.held.rate))
			l.Extrapolated = f.far
			if f.low != nil {
				low, _ = s.byCPU(n, *f.low, capacity)
				high, _ = s.byCPU(fromHeld(s.held.rate), *f.high, capacity)
				spans = f.spans
			}
		}
	}
	value := float64(n)
	l.Value = &value
	if spans != "" {
		from, to := float64(low), float64(high)
		l.Low, l.High, l.Spans = &from, &to, spans
	}
	g := group{name: "app hosts", n: &n, each: s.peak * float64(together) / value}
	g.full = s.held.rate / g.each
	cpu := s.e.at(g.each, "app CPU per saga", " µs", appCPU)
	if cpu.known && cpu.value > 0 && capacity > 0 && !s.e.store.Embedded() {
		g.full = max(g.full, capacity/(g.each*cpu.value))
	}
	switch {
	case n == together:
	case together == 1:
		l.Caveat = fmt.Sprintf("if %d carry %d times what one does, which was not measured", n, n)
	default:
		l.Caveat = fmt.Sprintf("if each carries as much as each of the %d that were measured together", together)
	}
	g.lines = []Line{l, cpu.line("app CPU", "cores busy", s.peak/perCore)}
	return g
}

// byCPU is the least number of hosts, up to most, whose CPU carries the peak at a cost that
// is factor times the measured one, each at no more than nearAbove times a measured rate.
func (s sizing) byCPU(most int, factor, capacity float64) (n int, f figure) {
	peak := s.peak * float64(s.e.hosts)
	highest := 0.0
	for _, p := range s.e.points(appCPU, 0, math.Inf(1)) {
		highest = max(highest, p.rate)
	}
	if highest == 0 {
		return most, f
	}
	least := min(most, max(1, s.least, ceil(peak/(nearAbove*highest))))
	n = least + sort.Search(most-least, func(i int) bool {
		perS := peak / float64(least+i)
		return perS*factor*s.e.at(perS, "", "", appCPU).value <= capacity
	})
	return n, s.e.at(peak/float64(n), "app CPU per saga", " µs", appCPU)
}

// ceil leaves out what is due to rounding.
func ceil(x float64) int { return max(1, int(math.Ceil(x-1e-9))) }

// nodes are those of the store. There is one server, whatever the rate, unless a Redis Cluster
// was measured: what one carries is not known from one server, and an SQL store has one
// primary.
func (s sizing) nodes() group {
	nodes := Line{What: "store nodes", Unit: "nodes"}
	g := group{name: "store nodes", each: s.peak}
	one, none, n := 1.0, 0.0, 1
	switch {
	case s.e.store.Driver == "":
		nodes.Basis = "the store behind the servers is not known: name it where they are measured"
		g.lines = []Line{nodes}
		return g
	case s.e.store.Embedded():
		nodes.Value, nodes.Basis = &none, "the store is a part of the app"
		nodes.Caveat = "each host keeps the sagas it was given on its own disk; nobody else may open them"
		g.lines = []Line{nodes}
		return g
	case s.e.store.Masters() > 0:
		return s.masters()
	}
	nodes.Unit, nodes.Value, g.n = "primary", &one, &n
	nodes.Basis = fmt.Sprintf("one held %s/s (%s), and the peak is %s of that", format.Number(s.held.rate), s.e.names(), format.Percent(s.peak/s.held.rate))
	nodes.Extrapolated = s.peak > sameRate*s.held.rate
	if g.full = s.held.rate / s.peak; nodes.Extrapolated {
		g.full = 0
		nodes.Caveat = "that one carries more than it held was not measured"
		if s.e.oneCore() {
			nodes.Caveat += "; " + measureCluster
		}
	}
	used := s.e.at(s.peak, "store CPU per saga", " µs", storeCPU).line("store CPU", "cores busy", s.peak/perCore)
	children := s.e.at(s.peak, "CPU of children per saga", " µs", childCPU).line("store children", "cores busy", s.peak/perCore)
	own := used
	if s.e.store.Replicated() {
		nodes.Unit, used.Caveat, children.Caveat = "primary with a replica like it", s.e.both(), s.e.both()
		if f := s.e.at(s.peak, "CPU of the primary per saga", " µs", primaryCPU); f.known {
			own = f.line("", "", s.peak/perCore)
		}
	}
	if s.e.oneCore() {
		if why := s.impossible(); why != "" {
			nodes.Value, nodes.Caveat, g.n = nil, why, nil
		}
		g.lines = []Line{nodes, s.commands(s.peak).line("store main thread", "of its one core", s.peak/perCore), children, used}
		return g
	}
	g.lines = []Line{nodes, s.cores(own), used}
	return g
}

// both qualifies the figures of a store with replicas that are sums. It is empty without one.
func (e evidence) both() string {
	switch {
	case e.store.Replicated():
		return "primary and replica together"
	case e.store.Settings[result.KeyReplicas] != "":
		return "masters and replicas together"
	}
	return ""
}

const measureCluster = "a Redis Cluster may carry more: measure one (bench capacity redis --start --nodes 3, or with its URL)"

// masters are those of a Redis Cluster: as many as were measured if they held the peak, else
// as many as carry it if each carries what each of these held.
func (s sizing) masters() group {
	together := s.e.store.Masters()
	fromHeld := func(rate float64) int { return max(together, ceil(s.peak*float64(together)/rate)) }
	n := fromHeld(s.held.rate)
	value := float64(n)
	l := Line{
		What: "store nodes", Unit: "masters", Value: &value, Extrapolated: n > together,
		Basis:  fmt.Sprintf("%s held %s/s (%s), and the peak is %s of that", format.Plural(int64(together), "master"), format.Number(s.held.rate), s.e.names(), format.Percent(s.peak/s.held.rate)),
		Caveat: "replicas are not counted",
	}
	if n > together {
		l.Caveat = fmt.Sprintf("if each of %d carries as much as each of %d did, which was not measured: the more masters, the smaller are the batches; %s", n, together, l.Caveat)
	}
	if s.held.low != nil && *s.held.low > 0 { // 0: one of the searches held none
		low, high := float64(fromHeld(*s.held.high)), float64(fromHeld(*s.held.low))
		l.Low, l.High, l.Spans = &low, &high, s.held.spans
	}
	g := group{name: "store nodes", n: &n, each: s.peak * float64(together) / value}
	g.full = s.held.rate / g.each
	at := func(name string, of measure) figure { return s.e.at(g.each, name, " µs", of) }
	children := at("CPU of children per saga", childCPU).line("store children", "cores busy", s.peak/perCore)
	used := at("store CPU per saga", storeCPU).line("store CPU", "cores busy", s.peak/perCore)
	children.Caveat, used.Caveat = s.e.both(), s.e.both()
	g.lines = []Line{
		l, s.commands(g.each).line("store main thread", "of the busiest master's one core", g.each/perCore), children, used,
	}
	return g
}

// cores are those of an SQL server.
func (s sizing) cores(used Line) Line {
	l := Line{What: "store cores", Unit: "cores", Basis: used.Basis, Extrapolated: used.Extrapolated}
	share, which := s.held.usable(processor{"the machine", s.e.busy}, processor{"the store", storeShare})
	switch {
	case used.Value == nil:
		l.Caveat = "the CPU of a server on another machine is not seen from here"
		return l
	case share == 0:
		l.Caveat = "how busy they may be is not known: no processor was measured whose use shows it"
		return l
	}
	l.Basis += fmt.Sprintf("; used to %s%%: %s was that busy at %s/s, the highest held rate", format.Number(100*share), which, format.Number(s.held.rate))
	whole := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		y := float64(ceil(*x / share))
		return &y
	}
	l.Value, l.Low, l.High, l.Spans = whole(used.Value), whole(used.Low), whole(used.High), used.Spans
	if has := mean(s.held.steps, storeCores); has != nil && *l.Value > *has {
		l.Caveat = fmt.Sprintf("more than the %s that the measured server had: nobody has seen it use them", format.Number(*has))
	}
	return l
}

// commands is the CPU that a saga takes on the thread that runs a Redis' commands, or else
// all of the store's. Its children, which rewrite the log and write snapshots, are in the
// store's CPU. Of a cluster it is that of the busiest master, for a saga of all masters.
func (s sizing) commands(perS float64) figure {
	if f := s.e.at(perS, "main-thread CPU per saga", " µs", mainCPU); f.known || s.e.store.Masters() > 0 {
		return f
	}
	return s.e.at(perS, "store CPU per saga (that of its main thread was not measured)", " µs", storeCPU)
}

// impossible says why one Redis cannot carry the peak; empty if it may.
func (s sizing) impossible() string {
	f := s.commands(s.peak)
	if !s.e.oneCore() || s.e.store.Masters() > 0 || s.peak*f.value <= perCore {
		return ""
	}
	return fmt.Sprintf("one Redis server cannot carry %s/s at the measured cost: at most %s/s by the CPU of its main thread (%s); %s",
		format.Number(s.peak), format.Number(perCore/f.value), f.basis, measureCluster)
}
