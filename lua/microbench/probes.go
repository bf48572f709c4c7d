package microbench

import (
	"fmt"
	"slices"
	"strings"

	"sagabench/lua"
)

// base is the shape that the others differ from in one thing.
var base = Shape{Steps: 2, Sagas: 1, Pipeline: 16, Conns: connections}

// The values that are measured.
var (
	pipelines = []float64{1, 16, 50}
	batches   = []float64{1, 16, 64}
	steps     = []int{1, 2, 10, 50}
	payloads  = []int{0, 256, 4096}
	// splitBatches are those at which scripts are taken apart, and at which steps,
	// payloads and due indexes are varied.
	splitBatches = []float64{1, 16}
)

// of is the shape of a call that takes so many sagas, as a store makes it.
func (s Shape) of(sagas float64) Shape {
	s.Sagas = sagas
	return s
}

// ours are the scripts whose price is asked.
func ours() []lua.Script { return lua.All() }

// list collects probes, each once.
type list struct {
	probes []probe
	known  map[Key]bool
}

func (l *list) add(p probe) {
	if !l.known[p.Key] {
		l.known[p.Key] = true
		l.probes = append(l.probes, p)
	}
}

func (l *list) operation(o operation, variant string, s Shape, other bool) {
	if p, ok := probeOf(o, variant, s); ok {
		p.Other = other
		l.add(p)
	}
}

// list is what is to be measured.
func (b *Bench) list() ([]probe, error) {
	switch {
	case b.cfg.Against != nil:
		return b.comparison(), nil
	case b.cfg.Brief:
		return brief(), nil
	}
	return b.probes(b.functions())
}

// probes are all of them.
func (b *Bench) probes(functions bool) ([]probe, error) {
	l := &list{known: map[Key]bool{}}
	for _, o := range operations(ours()) {
		commands, err := b.commands(o)
		if err != nil {
			return nil, err
		}
		for _, sagas := range splitBatches {
			// What is compared is measured in a row: see Bench.split.
			l.pipelines(o, sagas)
			s := base.of(sagas)
			for _, variant := range append([]string{empty, noCalls}, leavingOut(commands)...) {
				l.operation(o, variant, s, false)
			}
			for _, s.Steps = range steps {
				l.operation(o, whole, s, false)
			}
			s = base.of(sagas)
			for _, s.Payload = range payloads {
				l.operation(o, whole, s, false)
			}
			s = base.of(sagas)
			for _, s.DueIndex = range b.cfg.Due {
				if o.due+o.leaves != notDue {
					l.operation(o, whole, s, false)
				}
			}
		}
		for _, sagas := range batches {
			l.pipelines(o, sagas)
		}
	}
	for _, p := range append(references(b.keys, functions), classicProbes()...) {
		l.everyPipeline(p)
	}
	for _, p := range indexReferences() {
		for _, size := range append([]int{0}, b.cfg.Due...) {
			p.DueIndex = size
			l.everyPipeline(p)
		}
	}
	return l.probes, nil
}

func (l *list) pipelines(o operation, sagas float64) {
	s := base.of(sagas)
	for _, s.Pipeline = range pipelines {
		l.operation(o, whole, s, false)
	}
}

func leavingOut(commands []string) (variants []string) {
	for _, command := range commands {
		variants = append(variants, withoutIt+command)
	}
	return variants
}

// commands are those that an operation calls when all goes well, in upper case.
func (b *Bench) commands(o operation) ([]string, error) {
	p, _ := probeOf(o, whole, base)
	if err := b.loadScript(p.script); err != nil {
		return nil, err
	}
	s, err := b.once(p, 1)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", o.script.Name, err)
	}
	delete(s.inside, "evalsha")
	var commands []string
	for command := range s.inside {
		commands = append(commands, strings.ToUpper(command))
	}
	slices.Sort(commands)
	return commands, nil
}

func (l *list) everyPipeline(p probe) {
	p.Sagas, p.Conns = 1, connections
	for _, p.Pipeline = range pipelines {
		l.add(p)
	}
}

// comparison are the operations of both sets of scripts, side by side.
func (b *Bench) comparison() []probe {
	l := &list{known: map[Key]bool{}}
	others := operations(b.cfg.Against)
	for i, o := range operations(ours()) {
		for _, sagas := range batches {
			l.operation(o, whole, base.of(sagas), false)
			l.operation(others[i], whole, base.of(sagas), true)
		}
	}
	return l.probes
}

// brief are the three scripts of a saga, one saga and several a call, with and
// without a pipeline.
func brief() []probe {
	l := &list{known: map[Key]bool{}}
	for _, o := range operations(ours())[:3] {
		for _, sagas := range splitBatches {
			s := base.of(sagas)
			l.operation(o, whole, s, false)
			s.Pipeline = 1
			l.operation(o, whole, s, false)
		}
	}
	return l.probes
}
