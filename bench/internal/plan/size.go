package plan

import (
	"fmt"
	"math"
	"sort"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// sizing is the demand with what it is sized by.
type sizing struct {
	d       Demand
	e       evidence
	highest serviceRate
	peak    float64 // sagas per second
	least   int     // app hosts: one fewer was measured, and did not carry the peak
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

// hosts are those of the app.
func (s sizing) hosts() group {
	if s.e.store.Embedded() {
		return s.embeddedHosts()
	}
	g := s.machines("app hosts", fmt.Sprintf("hosts of %d cores", s.e.cores), "app CPU per saga", appCPU, s.e.hosts, float64(s.e.cores), max(2, s.least), s.least)
	if !s.e.shared {
		g.lines[0].Caveat = join(g.lines[0].Caveat, "a host is taken to have the cores of the load generator's machine")
	}
	return g
}

// embeddedHosts are as many as one that was measured fits into the peak: its disk
// bounds it as much as its CPU does.
func (s sizing) embeddedHosts() group {
	count := func(perS float64) float64 { return math.Ceil(s.peak / perS) }
	hosts := count(s.highest.met.rate)
	n := int(hosts)
	l := Line{
		What: "app hosts", Unit: fmt.Sprintf("hosts of %d cores", s.e.cores), Value: &hosts,
		Basis: fmt.Sprintf("one carried %s/s and kept the promise (%s)", format.Number(s.highest.met.rate), s.e.names()),
	}
	if s.highest.violated != nil {
		fewest := count(s.highest.violated.rate)
		l.Low, l.High = &fewest, &hosts
		l.Basis += fmt.Sprintf("; at %s/s it was broken", format.Number(s.highest.violated.rate))
	}
	g := group{name: "app hosts", n: &n, each: s.peak / hosts, full: hosts * s.highest.met.rate / s.peak}
	l.Extrapolated = s.beyond(g.each)
	l.Caveat = s.many(n, 1)
	g.lines = []Line{l, s.cpu("app CPU", "app CPU per saga", appCPU, g.each)}
	return g
}

// nodes are those of the store.
func (s sizing) nodes() group {
	if s.e.store.Driver == "" {
		return group{name: "store nodes", lines: []Line{{
			What: "store nodes", Unit: "nodes", Basis: "the store behind the servers is not known: name it where they are measured",
		}}}
	}
	if s.e.store.Embedded() {
		none := 0.0
		return group{name: "store nodes", lines: []Line{{
			What: "store nodes", Unit: "nodes", Value: &none, Basis: "the store is a part of the app",
			Caveat: "each host keeps the sagas it was given on its own disk; nobody else may open them",
		}}}
	}
	if s.e.oneCore() {
		const cluster = 3 // a Redis Cluster has no fewer masters: most of them decide who replaces one
		return s.machines("store nodes", "masters, one core each", "store CPU per saga", storeCPU, 1, 1, cluster, 1)
	}
	return s.primary()
}

// primary is one SQL server, which grows by cores.
func (s sizing) primary() group {
	one, n := 1.0, 1
	g := group{name: "store nodes", n: &n, each: s.peak}
	nodes := Line{
		What: "store nodes", Unit: "primary", Value: &one,
		Basis: "all writes go to one primary", Extrapolated: s.beyond(s.peak),
	}
	used := s.cpu("store CPU", "store CPU per saga", storeCPU, s.peak)
	cores := Line{What: "store cores", Unit: "cores", Basis: used.Basis, Extrapolated: used.Extrapolated}
	if s.highest.usable == nil {
		cores.Caveat = unknownUse
	} else {
		cores.Value, cores.Low, cores.High = onEach(used, func(x float64) float64 { return math.Ceil(x / *s.highest.usable) })
		cores.Basis = join(cores.Basis, s.used())
	}
	if cores.Value != nil && *used.Value > 0 {
		g.full = *cores.Value * *s.highest.usable / *used.Value
		if *cores.Value > float64(s.e.cores) {
			cores.Caveat = fmt.Sprintf("more than the %d cores of the measured machine: nobody has seen the server use them", s.e.cores)
		}
	}
	g.lines = []Line{nodes, cores, used}
	return g
}

const unknownUse = "how busy it may be is not known: no processor was measured whose use shows it"

// machines are as many as keep a processor of each no busier than one was measured to
// be while it kept the promise; if one is not enough, no fewer than several, and never
// fewer than least. The measured rates are those of so many together.
func (s sizing) machines(what, unit, name string, cost func(result.Step) *float64, together int, cores float64, several, least int) group {
	g := group{name: what, each: s.peak}
	l := Line{What: what, Unit: unit}
	f := s.e.at(s.peak, name, " µs", cost)
	switch {
	case !f.known || f.value <= 0:
		l.Basis = f.basis
	case s.highest.usable == nil:
		l.Basis, l.Caveat = f.basis, unknownUse
	default:
		capacity := float64(together) * cores * *s.highest.usable * perCore
		enough := s.peak <= s.highest.met.rate // as many as were measured, whatever each cost
		count := func(factor float64) int {
			n := s.count(cost, factor, together, capacity)
			if enough {
				n = min(n, together)
			}
			if n = max(n, least); n > 1 {
				return max(n, several)
			}
			return 1
		}
		n := count(1)
		g.n, g.each = &n, s.peak*float64(together)/float64(n)
		f = s.e.at(g.each, name, " µs", cost)
		value := float64(n)
		l.Value, l.Basis, l.Caveat = &value, join(f.basis, s.used()), s.many(n, together)
		if f.off != nil {
			low := float64(count(max(0, 1-*f.off)))
			high := float64(count(1 + *f.off))
			l.Low, l.High = &low, &high
		}
		g.full = capacity / (g.each * f.value)
		if n == together {
			g.full = max(g.full, s.highest.met.rate/s.peak)
		}
	}
	l.Extrapolated = s.beyond(g.each)
	g.lines = []Line{l, s.cpu(name[:len(name)-len(" per saga")], name, cost, g.each)}
	return g
}

// count is the least number of machines that carry the peak at a cost that is factor
// times the measured one; so many together have a capacity, in µs of CPU a second.
func (s sizing) count(cost func(result.Step) *float64, factor float64, together int, capacity float64) int {
	highest := 0.0
	for _, r := range s.e.rates {
		for _, x := range known(r.runs, cost) {
			highest = max(highest, x)
		}
	}
	peak := s.peak * float64(together)
	most := int(math.Ceil(peak * highest * factor / capacity))
	return 1 + sort.Search(most, func(i int) bool {
		perS := peak / float64(i+1)
		return perS*s.e.at(perS, "", "", cost).value*factor <= capacity
	})
}

// cpu is the cores that all of the peak keeps busy, where each machine has a rate.
func (s sizing) cpu(what, name string, cost func(result.Step) *float64, each float64) Line {
	f := s.e.at(each, name, " µs", cost)
	l := Line{What: what, Unit: "cores busy", Basis: f.basis, Extrapolated: s.beyond(each)}
	l.Value, l.Low, l.High = f.times(s.peak / perCore)
	return l
}

// beyond reports whether a line is based on more than was measured: the peak itself, or
// the rate of each machine.
func (s sizing) beyond(each float64) bool {
	return s.peak > sameRate*s.e.highest() || s.e.beyond(each)
}

// used says how busy a processor may be.
func (s sizing) used() string {
	return fmt.Sprintf("used to %s%%: %s was that busy at %s/s, the highest rate that kept the promise",
		format.Number(100**s.highest.usable), s.highest.why, format.Number(s.highest.met.rate))
}

// many says what is assumed of a number that was not measured together.
func (s sizing) many(n, together int) string {
	switch {
	case n == together:
		return ""
	case together == 1:
		return fmt.Sprintf("if %d carry %d times what one does, which was not measured", n, n)
	}
	return fmt.Sprintf("if each carries as much as each of the %d that were measured together", together)
}

// onEach applies f to the value of a line and to the ends of its interval.
func onEach(l Line, f func(float64) float64) (value, low, high *float64) {
	apply := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		y := f(*x)
		return &y
	}
	return apply(l.Value), apply(l.Low), apply(l.High)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
