package microbench

import (
	"slices"
	"strings"
)

// cell is a probe and what it measured so far.
type cell struct {
	probe
	calls   int            // in a window; 0: not known yet
	like    *cell          // that has as many calls; nil: none
	samples map[int]sample // by round
	failure string         // why there are none
}

// name is what a person calls the probe.
func (k Key) name() string {
	if k.Variant == whole {
		return k.Probe
	}
	return k.Probe + ", " + k.Variant
}

// comparedWith is the key of what the probe is compared with: itself, if it is
// compared with nothing.
func (k Key) comparedWith() Key {
	k.Variant, k.Other = whole, false
	return k
}

func (b *Bench) cellOf(key Key) *cell {
	for _, c := range b.cells {
		if c.Key == key {
			return c
		}
	}
	return nil
}

func (s sample) cpuPerCall() float64 { return s.cpu.all / s.calls }
func (s sample) callsPerS() float64  { return s.calls / s.took.Seconds() }
func (s sample) inPerCall() float64  { return s.in / s.calls }
func (s sample) outPerCall() float64 { return s.out / s.calls }

// oneCore is the CPU of the thread that runs commands, where that is known.
func (s sample) oneCore() float64 {
	if s.cpu.main >= 0 {
		return s.cpu.main
	}
	return s.cpu.all
}

func (s sample) coreCall() float64 { return s.oneCore() / s.calls }
func (s sample) coreSaga() float64 { return s.oneCore() / s.sagas }
func (s sample) allSaga() float64  { return s.cpu.all / s.sagas }

// figure is nil without samples.
func (c *cell) figure(of func(sample) float64) *Figure {
	var values []float64
	for _, s := range c.samples {
		values = append(values, of(s))
	}
	return figureOf(values)
}

// median is 0 without samples.
func (c *cell) median(of func(sample) float64) float64 {
	if f := c.figure(of); f != nil {
		return f.Median
	}
	return 0
}

// perSaga is one saga's share of a call, its CPU by either of coreSaga and allSaga.
func (c *cell) perSaga(cpu func(sample) float64) cost {
	calls := c.median(func(s sample) float64 { return s.calls / s.sagas })
	return cost{c.median(cpu), calls * c.median(sample.inPerCall), calls * c.median(sample.outPerCall)}
}

// ratios are those of two probes' CPU per call in the rounds that measured both, by
// round.
func ratios(of, to *cell) map[int]float64 {
	all := map[int]float64{}
	if of == nil || to == nil {
		return all
	}
	for round, s := range of.samples {
		if against, both := to.samples[round]; both && against.cpu.all > 0 {
			all[round] = s.cpuPerCall() / against.cpuPerCall()
		}
	}
	return all
}

// leavesOut is the command that the probe's variant does without.
func (k Key) leavesOut() (command string, is bool) {
	return strings.CutPrefix(k.Variant, withoutIt)
}

// inside is how often a command runs per saga, and how long the server is in it
// by its own clock, in µs per saga.
func (c *cell) inside(command string) (calls float64, own *float64) {
	name := strings.ToLower(command)
	calls = c.median(func(s sample) float64 { return s.inside[name].Calls / s.sagas })
	if f := c.figure(func(s sample) float64 { return s.inside[name].US / s.sagas }); f != nil {
		own = &f.Median
	}
	return calls, own
}

// commandsInside are those that ran in any round, in lower case and in order.
func (c *cell) commandsInside() []string {
	var all []string
	for _, s := range c.samples {
		for command := range s.inside {
			if !slices.Contains(all, command) {
				all = append(all, command)
			}
		}
	}
	slices.Sort(all)
	return all
}
