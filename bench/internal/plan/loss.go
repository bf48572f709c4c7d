package plan

import (
	"fmt"
	"math"

	"sagabench/internal/format"
)

// headroom is how much higher than the peak the rate may be.
func (g group) headroom() []Line {
	if g.full == 0 {
		return nil
	}
	more := 100 * (g.full - 1)
	return []Line{{
		What: "headroom of the " + g.name, Value: &more, Unit: "% above the peak",
		Basis: "from the lines above: up to the held rate, or until they are as busy as they were there", Extrapolated: g.lines[0].Extrapolated,
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
	if *g.n == 1 {
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
		l.words = fmt.Sprintf("the service level, if it is an app host: the %d left would have %s%% of the load that is known to meet it, at the peak; one host more mends that",
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
	l.line.Value, l.line.Basis = &percent, "all sagas are on one node"
	if *g.n > 1 {
		l.line.Basis = "sagas are spread evenly over the masters"
	}
	l.line.Caveat = "until a replica has taken over, or it is back"
	l.words = fmt.Sprintf("the store: %s of the sagas wait until a replica of the lost node has taken over, or it is back", format.Percent(l.share))
	return l
}

// first is the loss that most sagas feel.
func first(losses ...loss) string {
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
