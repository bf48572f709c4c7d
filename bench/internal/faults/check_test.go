package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bound is how long after a fault a saga may take to end: the lease of a dead host, and
// 2 s.
const bound = lease + 2*time.Second

// ended waits until reads from a host show that all sagas have ended, or are gone.
func (c *clients) ended(t *testing.T, from *host, gids []string) (took time.Duration) {
	t.Helper()
	began := time.Now()
	for _, gid := range gids {
		require.Eventually(t, func() bool {
			status := c.read(from, gid)
			return order[status] == 3 || status == "missing"
		},
			max(time.Until(began.Add(bound+*slack)), time.Millisecond), 10*time.Millisecond, "saga %s has not ended", gid)
	}
	return time.Since(began)
}

// violations returns the calls that participants must not have received, and the missing
// ones. A host that was stopped may make one late call when it continues, which barriers
// of participants refuse.
func (p plan) violations(calls []call, stopped bool) (found []string) {
	_, compensated := p.end()
	var done, undone []int   // by step: how often
	var undoneAt []time.Time // by step: when it was first
	var undoing []bool       // by step: whether no action of it may be called any more
	done, undone, undoneAt = make([]int, len(p.actions)), make([]int, len(p.actions)), make([]time.Time, len(p.actions))
	undoing = make([]bool, len(p.actions))
	count := map[string]int{}
	for i, c := range calls {
		name := fmt.Sprintf("step %d, compensate %v", c.step+1, c.compensate)
		if count[name]++; count[name] > 30 {
			found = append(found, name+": called over and over")
		}
		switch {
		case c.compensate && p.concurrent: // other actions may be on their way
			undoing[c.step] = true
		case c.compensate:
			for step := range undoing {
				undoing[step] = true
			}
		case undoing[c.step] && !stopped:
			found = append(found, name+": called after a compensation")
		}
		if c.compensate {
			found = append(found, p.early(calls[:i], c)...)
		}
		switch {
		case !c.done:
		case c.compensate:
			if undone[c.step]++; undoneAt[c.step].IsZero() || c.end.Before(undoneAt[c.step]) {
				undoneAt[c.step] = c.end
			}
		default:
			done[c.step]++
		}
	}
	for step := range p.actions {
		switch {
		case compensated == 0 && done[step] == 0:
			found = append(found, fmt.Sprintf("step %d: succeeded without being done", step+1))
		case step < compensated && undone[step] == 0:
			found = append(found, fmt.Sprintf("step %d: not compensated", step+1))
		case step >= compensated && undone[step] > 0:
			found = append(found, fmt.Sprintf("step %d: compensated", step+1))
		}
		if !p.concurrent && step+1 < compensated {
			for _, c := range calls {
				if c.compensate && c.step == step && c.start.Before(undoneAt[step+1]) {
					found = append(found, fmt.Sprintf("step %d: compensated before the one after it", step+1))
				}
			}
		}
	}
	return found
}

// transit is how long a call may take to reach the participant, on a busy machine.
const transit = requestTimeout * 3 / 4

// early reports a compensation that began while its own action was running and within
// its deadline. The caller's deadline begins before the participant gets the call.
func (p plan) early(before []call, c call) (found []string) {
	for _, action := range before {
		working := action.end.IsZero() || action.end.After(c.start)
		if !action.compensate && action.step == c.step && working && c.start.Sub(action.start) < requestTimeout-transit {
			found = append(found, fmt.Sprintf("step %d: compensated after %v, while its action was running", c.step+1, c.start.Sub(action.start)))
		}
	}
	return found
}
