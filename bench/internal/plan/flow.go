package plan

import (
	"fmt"
	"math"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
	"sagabench/store"
)

// held is what sagas take up: those under way, and those that have ended and are
// kept. A host has the rate each at the peak.
func (s sizing) held(each float64) []Line {
	kept := s.e.at(each, "a finished saga keeps", " bytes", memory)
	took := s.e.at(min(each, s.highest.met.rate), "mean latency", " ms", latency)
	unfinished := Line{
		What: heldUnfinished, Unit: "bytes", Basis: join(took.basis, kept.basis),
		Caveat: "at the peak; one is taken to hold as much as a finished one does", Extrapolated: s.beyond(each),
	}
	if took.known {
		unfinished.Value, unfinished.Low, unfinished.High = kept.times(s.peak * took.value / 1000)
	}
	finished := Line{What: heldFinished, Unit: "bytes", Basis: kept.basis, Extrapolated: s.beyond(each)}
	if s.d.Retention == 0 {
		none := 0.0
		finished.Value, finished.Basis = &none, "they are deleted at once"
		return []Line{unfinished, finished}
	}
	finished.Value, finished.Low, finished.High = kept.times(s.d.RatePerS * s.d.Retention.Seconds())
	finished.Caveat = fmt.Sprintf("of %s at the average rate; in memory for Redis, otherwise on disk", format.Duration(s.d.Retention))
	return []Line{unfinished, finished}
}

const (
	heldUnfinished = "held by unfinished sagas"
	heldFinished   = "held by finished sagas"
)

// memoryEach is what a node has to have that keeps all its sagas in memory.
func (s sizing) memoryEach(nodes group, held []Line) []Line {
	if !s.e.oneCore() || nodes.n == nil {
		return nil
	}
	l := Line{What: "memory of each store node", Unit: "bytes", Basis: "what sagas hold, spread evenly over the nodes"}
	for _, h := range held {
		l.Extrapolated = l.Extrapolated || h.Extrapolated
		if h.Value == nil {
			return nil
		}
	}
	sum := func(of func(Line) *float64) *float64 {
		total := 0.0
		for _, h := range held {
			x := of(h)
			if x == nil {
				x = h.Value // known without an interval
			}
			total += *x / float64(*nodes.n)
		}
		return &total
	}
	l.Value = sum(func(h Line) *float64 { return h.Value })
	if held[0].Low != nil {
		l.Low, l.High = sum(func(h Line) *float64 { return h.Low }), sum(func(h Line) *float64 { return h.High })
	}
	if has := float64(s.e.memory); has > 0 && *l.Value > has {
		l.Caveat = fmt.Sprintf("more than the %s GB of the measured machine: more nodes, or a shorter retention, need less", format.Number(has/1e9))
	}
	return []Line{l}
}

// flows are what passes each second at the peak.
func (s sizing) flows(each float64) []Line {
	line := func(what, unit, name, per string, of func(result.Step) *float64) Line {
		f := s.e.at(each, name, per, of)
		l := Line{What: what, Unit: unit, Basis: f.basis, Extrapolated: s.beyond(each)}
		l.Value, l.Low, l.High = f.times(s.peak)
		return l
	}
	in := line("network to the store", "bytes/s", "to the store per saga", " bytes", bytesIn)
	out := line("network from the store", "bytes/s", "from the store per saga", " bytes", bytesOut)
	disk := in
	disk.What = "written to disk"
	disk.Caveat = "at least: what a store is sent it writes to its log; rewriting and compaction are not counted"
	if s.e.store.Durability == store.D0.String() {
		none := 0.0
		disk = Line{What: disk.What, Value: &none, Unit: disk.Unit, Basis: "D0: " + store.D0.Meaning()}
	}
	return []Line{disk, line("store fsyncs", "/s", "fsyncs per saga", "", fsyncs), in, out}
}

// headroom is how much higher than the peak the rate may be.
func (g group) headroom() []Line {
	if g.full == 0 {
		return nil
	}
	more := 100 * (g.full - 1)
	return []Line{{
		What: "headroom of the " + g.name, Value: &more, Unit: "% above the peak",
		Basis: "from the lines above: until they are as busy as the promise was seen to bear", Extrapolated: g.lines[0].Extrapolated,
	}}
}

// loss is what becomes of the sagas when a machine is lost.
type loss struct {
	line  Line
	share float64 // of the sagas that wait, or miss the service level
	words string
}

func (s sizing) hostLost(g group) loss {
	l := loss{line: Line{What: "load of the app hosts left when one is lost", Unit: "% of what they may carry", Basis: "from the lines above"}}
	switch {
	case g.n == nil:
		l.line.Basis = "the number of hosts is not known"
		return l
	case *g.n == 1:
		l.share, l.line.Caveat = 1, "there is one: nothing is accepted until it is back"
		l.words = "the app host: there is one, and nothing is accepted until it is back"
		return l
	}
	left := float64(*g.n - 1)
	percent := 100 * float64(*g.n) / (g.full * left)
	l.line.Value, l.line.Extrapolated = &percent, g.lines[0].Extrapolated
	if s.e.store.Embedded() {
		l.line.Caveat = "the lost host's sagas wait on its disk until it is back"
		l.share, l.words = 1/float64(*g.n), "an app host: its sagas wait on its disk until it is back"
	}
	if math.Round(percent) > 100 {
		l.share = 1
		l.words = fmt.Sprintf("the promise, if it is an app host: the %d left would have %s%% of the load that is known to keep it, at the peak; one host more mends that",
			*g.n-1, format.Number(percent))
	}
	return l
}

func (s sizing) storeLost(g group) loss {
	l := loss{line: Line{What: "sagas waiting when a store node is lost", Unit: "%"}}
	switch {
	case s.e.store.Embedded():
		l.line.Basis = "the store is a part of the app"
		return l
	case g.n == nil:
		l.line.Basis = "the number of nodes is not known"
		return l
	}
	l.share = 1 / float64(*g.n)
	percent := 100 * l.share
	l.line.Value, l.line.Basis = &percent, "from the number of store nodes, over which sagas spread evenly"
	l.line.Caveat = "until a replica has taken over, or it is back"
	l.words = fmt.Sprintf("the store: %s%% of the sagas wait until a replica of the lost node has taken over, or it is back", format.Number(percent))
	return l
}

// first is the loss that most sagas feel.
func first(losses []loss) string {
	worst := losses[0]
	for _, l := range losses {
		if l.share > worst.share {
			worst = l
		}
	}
	if worst.words == "" {
		return "not known"
	}
	return worst.words
}
