package microbench

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// Record is what a saga takes on the server.
type Record struct {
	Pattern string `json:"pattern"` // see below
	Steps   int    `json:"steps"`
	Payload int    `json:"payload"`
	// Bytes in use, with its part of the due index while it is unfinished, by
	// used_memory.
	UnfinishedBytes float64 `json:"unfinished_bytes"`
	FinishedBytes   float64 `json:"finished_bytes"`
	// Allocations that a finished saga keeps, and that its calls made; nil where
	// the allocator does not count them. Ours took 16 sagas a call.
	Kept *float64 `json:"allocations_kept"`
	Made *float64 `json:"allocations_made"`
}

// The patterns of records.
const (
	patternOurs    = "ours"
	patternClassic = "classic"
)

// memoryShapes are the records that are measured.
func memoryShapes() []Shape {
	s := base.of(16)
	all := []Shape{s}
	for _, s.Payload = range payloads[1:] {
		all = append(all, s)
	}
	s.Payload = 0
	for _, s.Steps = range steps {
		if s.Steps != base.Steps {
			all = append(all, s)
		}
	}
	return all
}

// recordSagas is how many sagas a record is measured over: fewer of large ones.
func recordSagas(s Shape) int {
	const bytes = 24 << 20
	return min(20_000, bytes/(s.Steps*max(1, s.Payload)))
}

// Memory measures what sagas take, once.
func (b *Bench) Memory(ctx context.Context) error {
	save, complete := operations(ours())[0], operations(ours())[2]
	for _, s := range memoryShapes() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.doing("memory of a saga")
		p, _ := probeOf(save, whole, s)
		q, _ := probeOf(complete, whole, s)
		// Its saga has nothing marked yet; that makes no difference to the bytes.
		q.words = func(words []string, call group) []string {
			return completeWords(append(words, "EVALSHA", complete.script.SHA1), call, s)
		}
		if err := b.record(patternOurs, p, q, recordSagas(s)); err != nil {
			return err
		}
	}
	classics := classicProbes()
	return b.record(patternClassic, classics[0].at(1), classics[2].at(1), 5_000)
}

// at is the probe with a shape of one saga a call.
func (p probe) at(sagas float64) probe {
	p.Shape = Shape{Steps: p.Steps, Sagas: sagas}
	return p
}

// record saves and ends so many sagas and looks at the memory in between.
func (b *Bench) record(pattern string, save, complete probe, sagas int) error {
	plan := b.keys.plan(int(float64(sagas)/save.Sagas), b.next, save.Shape)
	b.next += sagas
	var used [3]float64
	var allocated [3]*allocations
	for i, p := range []*probe{nil, &save, &complete} {
		if p != nil {
			l := p.load(plan)
			if err := b.control.doAll(&l.calls); err != nil {
				return errors.Join(b.unless(err, "memory of a saga"), b.clear(complete, plan))
			}
		}
		memory, err := b.control.info("memory")
		if err != nil {
			return err
		}
		if used[i], err = memory.number("used_memory"); err != nil {
			return err
		}
		if allocated[i], err = b.allocations(); err != nil {
			return err
		}
	}
	n := 0.0
	for _, call := range plan {
		n += float64(len(call.sagas))
	}
	r := Record{
		Pattern: pattern, Steps: save.Steps, Payload: save.Payload,
		UnfinishedBytes: (used[1] - used[0]) / n, FinishedBytes: (used[2] - used[0]) / n,
	}
	if before, after := allocated[0], allocated[2]; before != nil && after != nil {
		kept, made := (after.live-before.live)/n, (after.made-before.made)/n
		r.Kept, r.Made = &kept, &made
	}
	b.records = append(b.records, r)
	return b.clear(complete, plan)
}

// unless makes of what the server refused a note.
func (b *Bench) unless(err error, what string) error {
	if isRefused(err) {
		b.note("%s: %v", what, err)
		return nil
	}
	return err
}

// allocations is what the server's allocator has counted.
type allocations struct{ live, made float64 }

// allocations asks the allocator; nil if it does not count.
func (b *Bench) allocations() (*allocations, error) {
	r, err := b.control.do("MEMORY", "MALLOC-STATS")
	if err != nil {
		return nil, b.unless(err, "allocations")
	}
	found := readAllocations(r.text)
	if found == nil {
		b.note("allocations: the allocator %s does not count them", b.server.Allocator)
	}
	return found, nil
}

// readAllocations reads jemalloc's report: the first line of totals, whose columns
// the line of names before it gives.
func readAllocations(report string) *allocations {
	var names []string
	for line := range strings.Lines(report) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "allocated" && words[1] == "nmalloc" {
			names = words
		}
		if len(words) == 0 || words[0] != "total:" || len(names) == 0 {
			continue
		}
		value := map[string]float64{}
		for i, word := range words[1:] {
			if x, err := strconv.ParseFloat(word, 64); err == nil && i < len(names) {
				value[names[i]] = x
			}
		}
		if value["nrequests"] == 0 {
			return nil
		}
		return &allocations{live: value["nmalloc"] - value["ndalloc"], made: value["nrequests"]}
	}
	return nil
}
