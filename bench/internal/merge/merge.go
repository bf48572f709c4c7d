package merge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// ErrMerge reports results that are not of the load hosts of one run.
var ErrMerge = errors.New("not the results of one run")

// minCommonShare is the least share of a host's measured part in which all hosts were
// measuring: a host alone is a different load.
const minCommonShare = 0.5

// Runs merges the results of the load hosts of one run. The clocks of the hosts must agree.
//
//   - Histograms are merged and counts added up. Percentiles are read from the merged
//     histogram; the timeline has none.
//   - Rates are those of all hosts in the time in which all were measuring.
//   - CPU of the load generators is added up. For what the hosts share see cost.
//   - The result is valid if all are.
//
// It returns an error that wraps ErrMerge for different sagas, modes or stores, for the
// same result twice, and for results that were not measured at the same time.
func Runs(results ...result.Result) (result.Summary, result.Recording, error) {
	var hosts []host
	for _, r := range results {
		if r.Run == nil || len(r.Recording.Intervals) == 0 {
			return result.Summary{}, result.Recording{}, fmt.Errorf("merge %s: %w: it has no %s", r.Dir, ErrMerge, result.FileHistogramLog)
		}
		hosts = append(hosts, newHost(r))
	}
	m, err := newMerge(hosts)
	if err != nil {
		return result.Summary{}, result.Recording{}, fmt.Errorf("merge: %w", err)
	}
	return m.summary()
}

// window is a span of time.
type window struct{ from, to time.Time }

func (w window) length() time.Duration { return w.to.Sub(w.from) }

// common returns the overlap of both. Its length may be negative.
func (w window) common(o window) window {
	if o.from.After(w.from) {
		w.from = o.from
	}
	if o.to.Before(w.to) {
		w.to = o.to
	}
	return w
}

// host is the result of one load generator.
type host struct {
	result.Result
	measured window
}

func newHost(r result.Result) host {
	h := host{Result: r}
	for k, i := range r.Recording.Intervals {
		if end := i.Start.Add(i.Length); k == 0 || end.After(h.measured.to) {
			h.measured.to = end
		}
		if k == 0 || i.Start.Before(h.measured.from) {
			h.measured.from = i.Start
		}
	}
	return h
}

// acknowledgedOf returns the number of sagas that the costs were divided by.
func acknowledgedOf(s result.Summary) float64 { return float64(s.Load.Requests - s.Load.Errors) }

// acknowledged estimates how many sagas were acknowledged to the host within a window. It
// assumes that the answers are spread evenly over an interval.
func (h host) acknowledged(w window) (n float64) {
	for _, i := range h.Recording.Intervals {
		whole := window{i.Start, i.Start.Add(i.Length)}
		if part := whole.common(w).length(); part > 0 {
			n += float64(i.Acknowledged) * float64(part) / float64(i.Length)
		}
	}
	return n
}

type merge struct {
	hosts  []host
	common window
}

func newMerge(hosts []host) (merge, error) {
	if len(hosts) < 2 {
		return merge{}, fmt.Errorf("%w: got %s, at least 2 are needed", ErrMerge, format.Plural(int64(len(hosts)), "result"))
	}
	m := merge{hosts, hosts[0].measured}
	first := hosts[0].Run
	for i, h := range hosts {
		m.common = m.common.common(h.measured)
		for _, other := range hosts[:i] {
			if other.Run.Run.Started.Equal(h.Run.Run.Started) && other.Run.Run.ID == h.Run.Run.ID {
				return m, fmt.Errorf("%w: %s and %s are the same result", ErrMerge, other.Dir, h.Dir)
			}
		}
		for _, same := range []struct{ name, one, other string }{
			{"saga", first.Run.Scenario.String(), h.Run.Run.Scenario.String()},
			{"mode", first.Load.Mode, h.Run.Load.Mode},
			{"store", first.Run.Store.Driver + " " + first.Run.Store.Version, h.Run.Run.Store.Driver + " " + h.Run.Run.Store.Version},
			{"durability", first.Run.Store.Durability, h.Run.Run.Store.Durability},
			{"store's settings", result.Pairs(first.Run.Store.Settings, "="), result.Pairs(h.Run.Run.Store.Settings, "=")},
		} {
			if same.one != same.other {
				return m, fmt.Errorf("%w: the %s of %s is %q, that of %s is %q", ErrMerge, same.name, hosts[0].Dir, same.one, h.Dir, same.other)
			}
		}
	}
	for _, h := range hosts {
		if !(m.commonShare(h) >= minCommonShare) {
			return m, fmt.Errorf("%w: all %d were measuring at the same time for only %s s of the %s s of %s",
				ErrMerge, len(hosts), format.Number(max(0, m.common.length().Seconds())), format.Number(h.measured.length().Seconds()), h.Dir)
		}
	}
	return m, nil
}

// commonShare returns the share of a host's measured part in which all were measuring.
func (m merge) commonShare(h host) float64 {
	return float64(m.common.length()) / float64(h.measured.length())
}

func (m merge) summary() (result.Summary, result.Recording, error) {
	rec := result.Recording{Latency: result.NewHistogram(), Service: result.NewHistogram()}
	for _, h := range m.hosts {
		if dropped := rec.Latency.Merge(h.Recording.Latency) + rec.Service.Merge(h.Recording.Service); dropped > 0 {
			return result.Summary{}, result.Recording{}, fmt.Errorf("merge %s: %d values beyond %d µs", h.Dir, dropped, int64(result.HighestUS))
		}
	}
	service := rec.Service
	if service.TotalCount() == 0 {
		service = rec.Latency
	}
	return result.Summary{
		Envelope: result.Envelope{
			Schema: result.Schema, Kind: result.KindRun,
			Run: m.run(), Check: m.check(), Validity: m.validity(), Environment: m.environment(),
		},
		Measurement: result.Measurement{
			Load: m.load(), LatencyMS: result.LatencyOf(rec.Latency), ServiceMS: result.LatencyOf(service),
			CostPerSaga: m.cost(), Resources: m.resources(),
		},
		Timeline: m.timeline(),
	}, rec, nil
}

func (m merge) run() result.Run {
	r := m.hosts[0].Run.Run
	var commands []string
	var targets []string
	known := true
	for _, h := range m.hosts {
		known = known && len(h.Run.Run.Targets) > 0
		targets = append(targets, h.Run.Run.Targets...)
		if h.Run.Run.Started.Before(r.Started) {
			r.Started, r.ID = h.Run.Run.Started, h.Run.Run.ID
		}
		r.SharedHost = r.SharedHost || h.Run.Run.SharedHost
		commands = append(commands, h.Run.Run.Command)
	}
	r.AppHosts, r.Targets = 0, nil
	if known {
		slices.Sort(targets)
		r.Targets = slices.Compact(targets)
		r.AppHosts = len(r.Targets)
	}
	r.ID += "-merged"
	r.DurationS = result.Round(m.common.length().Seconds())
	r.Topology = fmt.Sprintf("%d load hosts, each: %s", len(m.hosts), r.Topology)
	if allSame(commands) {
		commands = commands[:1]
	}
	r.Command = strings.Join(commands, " & ") + fmt.Sprintf(" # on %d hosts at once", len(m.hosts))
	return r
}

func allSame(list []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return s != list[0] })
}

func (m merge) load() result.Load {
	l := result.Load{Mode: m.hosts[0].Run.Load.Mode, ErrorsByKind: map[string]int64{}}
	var acknowledged float64
	l.OfferedPerS = m.sum(func(s result.Summary) *float64 { return s.Load.OfferedPerS })
	for i, h := range m.hosts {
		one := h.Run.Load
		l.InFlight += one.InFlight
		l.Requests += one.Requests
		l.Errors += one.Errors
		for kind, n := range one.ErrorsByKind {
			l.ErrorsByKind[kind] += n
		}
		if i == 0 {
			l.Delayed, l.Dropped = new(int64), new(int64)
			l.UnansweredStart, l.UnansweredEnd = new(int64), new(int64)
		}
		l.Delayed, l.Dropped = result.Sum(l.Delayed, one.Delayed), result.Sum(l.Dropped, one.Dropped)
		l.UnansweredStart = result.Sum(l.UnansweredStart, one.UnansweredStart)
		l.UnansweredEnd = result.Sum(l.UnansweredEnd, one.UnansweredEnd)
		l.LatenessMS = l.LatenessMS.Worst(one.LatenessMS)
		acknowledged += h.acknowledged(m.common)
	}
	l.AchievedPerS = result.Round(acknowledged / m.common.length().Seconds())
	l.Profile, l.Arrival = m.each(func(l result.Load) string { return l.Profile }), m.each(func(l result.Load) string { return l.Arrival })
	return l
}

// each returns the value that all hosts have, or the values of all hosts, joined.
func (m merge) each(of func(result.Load) string) string {
	var all []string
	for _, h := range m.hosts {
		all = append(all, of(h.Run.Load))
	}
	if allSame(all) {
		return all[0]
	}
	return strings.Join(all, " + ")
}

// sum adds up a figure of all hosts. It returns nil if one lacks it.
func (m merge) sum(of func(result.Summary) *float64) *float64 { return sum(m.hosts, of) }

func sum(hosts []host, of func(result.Summary) *float64) *float64 {
	sum := 0.0
	for _, h := range hosts {
		x := of(*h.Run)
		if x == nil {
			return nil
		}
		sum += *x
	}
	return &sum
}

// timeline has the rate of all hosts in each second of the common time.
func (m merge) timeline() (line []result.Sample) {
	for at := m.common.from; !at.Add(time.Second).After(m.common.to); at = at.Add(time.Second) {
		second, rate := window{at, at.Add(time.Second)}, 0.0
		for _, h := range m.hosts {
			rate += h.acknowledged(second)
		}
		rate = result.Round(rate)
		line = append(line, result.Sample{AtS: second.to.Sub(m.common.from).Seconds(), SagasPerS: &rate})
	}
	return line
}

// check adds up the acknowledged and the lost sagas. For the other counts each host audited
// the whole store, so it takes the highest.
func (m merge) check() result.Check {
	c := m.hosts[0].Run.Check
	for _, h := range m.hosts[1:] {
		o := h.Run.Check
		c.Acknowledged += o.Acknowledged
		c.Lost = result.Sum(c.Lost, o.Lost)
		c.Terminal = higher(c.Terminal, o.Terminal)
		c.BothOutcomes = higher(c.BothOutcomes, o.BothOutcomes)
		c.Uncompensated = higher(c.Uncompensated, o.Uncompensated)
		c.Unfinished = higher(c.Unfinished, o.Unfinished)
		c.Expired += o.Expired
		c.ForceStopped = max(c.ForceStopped, o.ForceStopped)
		c.LostWrites = max(c.LostWrites, o.LostWrites)
	}
	return c
}

// higher returns the higher of two figures, or the known one.
func higher[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func (m merge) validity() result.Validity {
	v := result.Validity{Valid: true}
	for _, h := range m.hosts {
		of := h.Run.Validity
		if m.explained() {
			of.Warnings = slices.DeleteFunc(slices.Clone(of.Warnings), func(w string) bool { return strings.HasPrefix(w, result.CountsDiffer) })
		}
		v.Include(h.Dir, of)
		if share := m.commonShare(h); share < 1-maxUncoveredShare {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s: all hosts were measuring for %s s of its %s s (%s); its latencies are of all its time",
				h.Dir, format.Number(m.common.length().Seconds()), format.Number(h.measured.length().Seconds()), format.Percent(share)))
		}
	}
	return v
}

// explained reports whether the sagas in the store that one host knows nothing of are those of
// the others.
func (m merge) explained() bool {
	var errors int64
	for _, h := range m.hosts {
		errors += h.Run.Load.Errors
	}
	c := m.check()
	return c.Terminal != nil && c.Unfinished != nil && c.Explains(*c.Terminal+*c.Unfinished, errors)
}

// environment adds up the machines.
func (m merge) environment() result.Environment {
	e := m.hosts[0].Run.Environment
	e.Versions = maps.Clone(e.Versions)
	e.HostID, e.Cores, e.Memory = "", 0, 0
	for _, h := range m.once(cpusOf) {
		e.Cores += h.Run.Environment.Cores
	}
	machines := m.once(machineOf)
	for _, h := range machines {
		o := h.Run.Environment
		e.Memory += o.Memory
		if !strings.Contains(e.CPU, o.CPU) {
			e.CPU += " and " + o.CPU
		}
	}
	if len(machines) > 1 {
		e.CPU = fmt.Sprintf("%d hosts, %s", len(machines), e.CPU)
	}
	return e
}

// once returns a host for each id, and all those without one: what hosts share is not to be
// added up.
func (m merge) once(idOf func(result.Environment) string) (hosts []host) {
	seen := map[string]bool{}
	for _, h := range m.hosts {
		id := idOf(h.Run.Environment)
		if id == "" || !seen[id] {
			hosts = append(hosts, h)
		}
		seen[id] = true
	}
	return hosts
}

// networkOf identifies the network interfaces of a host. Like machineOf and cpusOf it is empty
// if they are unknown.
func networkOf(e result.Environment) string { return e.HostID }

// machineOf identifies the machine of a host.
func machineOf(e result.Environment) string {
	boot, _, _ := strings.Cut(e.HostID, "/")
	return boot
}

// cpusOf identifies the CPUs that a host may use.
func cpusOf(e result.Environment) string {
	if machine := machineOf(e); machine != "" && e.CPUs.Load != nil {
		return machine + " " + *e.CPUs.Load
	}
	return ""
}
