package microbench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sagabench/lua"
)

// caseList collects cases, each once.
type caseList struct {
	cases []*callCase
	byKey map[Key]*callCase
}

func (l *caseList) add(c *callCase) {
	if c == nil || l.byKey[c.Key] != nil {
		return
	}
	if l.byKey == nil {
		l.byKey = map[Key]*callCase{}
	}
	c.samples = map[int]sample{}
	c.reference = l.byKey[c.Key.reference()]
	l.byKey[c.Key] = c
	l.cases = append(l.cases, c)
}

// priceCases returns everything that is measured of this repository's scripts.
func (b *bench) priceCases(ctx context.Context) (l caseList, err error) {
	for _, script := range lua.All() {
		o := operationOf(script)
		leftOut, err := b.commandsOf(ctx, o)
		if err != nil {
			return l, err
		}
		for _, sagas := range detailedBatches {
			// What a breakdown compares is measured in a row.
			for _, pipeline := range pipelines {
				l.add(newCase(o, whole, base.with(sagas, pipeline)))
			}
			s := base.batch(sagas)
			for _, variant := range append([]string{empty, noCommands}, leftOut...) {
				l.add(newCase(o, variant, s))
			}
			for _, s := range sizeShapes(sagas, b.dueIndexes) {
				if s.DueIndex == 0 || o.before != notDue || o.after != notDue {
					l.add(newCase(o, whole, s))
				}
			}
		}
		for _, s := range batchShapes() {
			l.add(newCase(o, whole, s))
		}
	}
	for _, pipeline := range pipelines {
		for _, c := range append(baselineCases(pipeline), pingCase(pipeline)) {
			l.add(c)
		}
	}
	return l, nil
}

// comparisonCases returns the scripts of both directories, alternating.
func comparisonCases(others []lua.Script) (l caseList) {
	for i, script := range lua.All() {
		for _, sagas := range batches {
			s := base.batch(sagas)
			other := newCase(operationOf(others[i]), whole, s)
			other.Other = true
			l.add(newCase(operationOf(script), whole, s))
			l.add(other)
		}
	}
	return l
}

// commandsOf returns the variants that leave out one of the commands that the operation
// runs when everything succeeds.
func (b *bench) commandsOf(ctx context.Context, o operation) (variants []string, err error) {
	c := newCase(o, whole, base)
	if err := b.loadScript(ctx, c.script); err != nil {
		return nil, err
	}
	s, err := b.window(ctx, c, 1)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", o.script.Name, err)
	}
	for command := range s.inside {
		if command != "evalsha" {
			variants = append(variants, without+strings.ToUpper(command))
		}
	}
	slices.Sort(variants)
	return variants, nil
}
