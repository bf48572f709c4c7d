package microbench

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"sagabench/bench/internal/microbench/wire"
	"sagabench/lua"
)

// Key says what was measured.
type Key struct {
	// Case is the name of a script, or of a call to compare with.
	Case string `json:"probe"`
	// Variant says what was left out of the script; empty: nothing.
	Variant string `json:"variant,omitempty"`
	// Other marks a script of the directory that is compared.
	Other bool `json:"other,omitempty"`
	Shape
}

// name is how the case is called in messages.
func (k Key) name() string { return strings.TrimSuffix(k.Case+", "+k.Variant, ", ") }

// reference is the key of the case that this one is compared with. It is the key
// itself if the case is compared with nothing.
func (k Key) reference() Key {
	k.Variant, k.Other = whole, false
	return k
}

// callCase is a kind of call, with what was measured so far.
type callCase struct {
	Key
	script  lua.Script // loaded before it is measured; without a source: none
	prepare commands   // creates what the calls need; nil: nothing
	args    func(args []string, call callKeys) []string
	items   int      // expected in the reply; wire.AnyReply: any but an error
	clear   commands // removes what the calls leave; nil: nothing

	reference *callCase // has as many calls in a window; nil: none
	calls     int       // in a window; 0: not known yet
	samples   map[int]sample
	refused   bool
}

// commands queues what prepares or clears calls.
type commands func(ctx context.Context, pipe redis.Pipeliner, calls []callKeys)

// load encodes the calls.
func (c *callCase) load(calls []callKeys) *wire.Load {
	l := &wire.Load{Items: c.items}
	var args []string
	for part := range slices.Chunk(calls, c.Pipeline) {
		var trip []byte
		for _, call := range part {
			args = c.args(args[:0], call)
			trip = wire.AppendCall(trip, args)
		}
		l.Trips = append(l.Trips, wire.RoundTrip{Bytes: trip, Calls: len(part)})
	}
	return l
}

// estimate is of a case that was measured.
func (c *callCase) estimate(of func(sample) float64) Estimate {
	var values []float64
	for _, s := range c.samples {
		values = append(values, of(s))
	}
	return *estimate(values, usual)
}

func (c *callCase) median(of func(sample) float64) float64 { return c.estimate(of).Median }

// measured reports whether there is a case with samples.
func (c *callCase) measured() bool { return c != nil && len(c.samples) > 0 }

// ratios returns the CPU per call of c divided by that of other, by round, of the rounds
// that measured both.
func (c *callCase) ratios(other *callCase) map[int]float64 {
	all := map[int]float64{}
	if c == nil || other == nil {
		return all
	}
	for round, s := range c.samples {
		if o, both := other.samples[round]; both && o.cpu.all > 0 {
			all[round] = s.cpuPerCall() / o.cpuPerCall()
		}
	}
	return all
}

// newCase returns the case of an operation with a part left out. It returns nil if the
// reply that stands in for that part is not known.
func newCase(o operation, variant string, s Shape) *callCase {
	script, ok := o.variant(variant, s)
	if !ok {
		return nil
	}
	c := &callCase{
		Key:    Key{Case: o.script.Name, Variant: variant, Shape: s},
		script: script, items: wire.AnyReply,
		prepare: func(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
			if o.exists {
				createSagas(ctx, pipe, calls, o.stored(s))
			}
			addDue(ctx, pipe, calls, o.before)
		},
		args: func(args []string, call callKeys) []string {
			return o.args(append(args, "EVALSHA", script.SHA1), call, s)
		},
		clear: func(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
			for _, call := range calls {
				pipe.Del(ctx, call.sagas...)
			}
			// A variant may leave in the index what the whole script removes.
			if o.before != notDue || o.after != notDue {
				removeDue(ctx, pipe, calls)
			}
		},
	}
	if variant == whole {
		c.items = 0
		if o.claims {
			c.items = 1 + 2*s.Sagas
		}
	}
	return c
}

func createSagas(ctx context.Context, pipe redis.Pipeliner, calls []callKeys, value string) {
	for _, call := range calls {
		for _, saga := range call.sagas {
			pipe.Set(ctx, saga, value, 0)
		}
	}
}

// addDue puts the sagas into their due indexes.
func addDue(ctx context.Context, pipe redis.Pipeliner, calls []callKeys, state dueState) {
	if state == notDue {
		return
	}
	score := 1.0
	if state == dueLater {
		score = float64(dueAt(lease))
	}
	eachIndex(calls, func(index string, sagas []string) {
		members := make([]redis.Z, len(sagas))
		for i, saga := range sagas {
			members[i] = redis.Z{Score: score, Member: saga}
		}
		pipe.ZAdd(ctx, index, members...)
	})
}

func removeDue(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
	eachIndex(calls, func(index string, sagas []string) { pipe.ZRem(ctx, index, sagas) })
}

// eachIndex calls do for the sagas of each due index.
func eachIndex(calls []callKeys, do func(index string, sagas []string)) {
	all := map[string][]string{}
	for _, call := range calls {
		all[call.index] = append(all[call.index], call.sagas...)
	}
	for index, sagas := range all {
		do(index, sagas)
	}
}

const ping = "PING"

// pingCase is a command that does nothing.
func pingCase(pipeline int) *callCase {
	return &callCase{
		Key: Key{Case: ping, Shape: pingShape(pipeline)}, items: wire.AnyReply,
		args: func(args []string, _ callKeys) []string { return append(args, ping) },
	}
}

func pingShape(pipeline int) Shape { return Shape{Sagas: 1, Pipeline: pipeline, Conns: connections} }
