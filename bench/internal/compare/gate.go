package compare

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sagabench/internal/format"
)

// ErrGate is the error of ParseGate.
var ErrGate = errors.New("not a gate")

// Gate limits how far B may be from A in one metric.
type Gate struct {
	Metric  string
	AtLeast bool    // a lower limit; otherwise an upper one
	Percent float64 // allowed change, in percent of A
}

var gateForm = regexp.MustCompile(`^([a-z0-9_]+)\s*(<=|>=)\s*([+-]?[0-9]+(?:\.[0-9]+)?)%$`)

// ParseGate reads a gate such as "store_cpu_us<=+5%" or "achieved_per_s>=-3%". The
// error wraps ErrGate.
func ParseGate(text string) (Gate, error) {
	parts := gateForm.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Gate{}, fmt.Errorf("%w: %q is not METRIC<=CHANGE%% or METRIC>=CHANGE%%, as in store_cpu_us<=+5%%", ErrGate, text)
	}
	var keys []string
	for _, m := range Figures {
		keys = append(keys, m.Key)
	}
	if !slices.Contains(keys, parts[1]) {
		return Gate{}, fmt.Errorf("%w: %q names no metric; there are %s", ErrGate, text, strings.Join(keys, ", "))
	}
	percent, err := strconv.ParseFloat(parts[3], 64)
	if err != nil || percent <= -100 {
		return Gate{}, fmt.Errorf("%w: %q: a change is more than -100%%", ErrGate, text)
	}
	return Gate{Metric: parts[1], AtLeast: parts[2] == ">=", Percent: percent}, nil
}

// String returns the gate in the syntax of ParseGate.
func (g Gate) String() string {
	sign := "<="
	if g.AtLeast {
		sign = ">="
	}
	return fmt.Sprintf("%s%s%+g%%", g.Metric, sign, g.Percent)
}

// Outcome of a gate.
type Outcome string

// A gate is broken if the whole interval of the ratio is beyond the limit, and kept if all
// of it is within. If the interval contains the limit, or the sides are not ranked, the
// comparison cannot tell: more pairs or a wider limit decide.
const (
	Kept       Outcome = "kept"
	Broken     Outcome = "broken"
	CannotTell Outcome = "cannot tell"
)

// GateResult is the outcome of a gate.
type GateResult struct {
	Gate       string   `json:"gate"`
	Outcome    Outcome  `json:"outcome"`
	Confidence *float64 `json:"confidence"` // of the interval that was judged; null: none was
	Evidence   string   `json:"evidence"`   // in words, with numbers
}

// gateError is the chance that the interval of any of the gates misses the truth.
const gateError = 0.05

// Check applies gates to the comparison. A gate is a question of its own, so the other
// metrics do not widen its interval, which is of 95%. Several gates share the 5%: two have
// intervals of 97.5%.
func (c Comparison) Check(gates []Gate) []GateResult {
	results := []GateResult{}
	for _, g := range gates {
		results = append(results, c.check(g, 1-gateError/float64(len(gates))))
	}
	return results
}

func (c Comparison) check(g Gate, level float64) GateResult {
	result := GateResult{Gate: g.String(), Outcome: CannotTell}
	i := slices.IndexFunc(c.Metrics, func(m Metric) bool { return m.Metric == g.Metric })
	if i < 0 {
		result.Evidence = notMeasured
		return result
	}
	m := c.Metrics[i]
	switch {
	case len(c.NotRanked) > 0:
		result.Evidence = "not ranked: " + List(c.NotRanked)
		return result
	case m.Ratio == nil:
		result.Evidence = m.Verdict
		return result
	}
	r, ok := interval(m.samples, level)
	if !ok {
		result.Evidence = tooVaried
		return result
	}
	low, high := 100*(r.BToA.Low-1), 100*(r.BToA.High-1)
	within, beyond := high <= g.Percent, low > g.Percent
	if g.AtLeast {
		within, beyond = low >= g.Percent, high < g.Percent
	}
	switch {
	case within:
		result.Outcome = Kept
	case beyond:
		result.Outcome = Broken
	}
	result.Confidence = &level
	result.Evidence = fmt.Sprintf("%s against %s: %s (%s to %s, interval of %s)",
		c.B.Name, c.A.Name, signed(*m.Effect), signed(low), signed(high), format.Percent(level))
	return result
}

// signed returns a change in percent, with its sign.
func signed(percent float64) string {
	if percent > 0 {
		return "+" + format.Number(percent) + "%"
	}
	return format.Number(percent) + "%"
}
