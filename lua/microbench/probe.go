package microbench

import (
	"maps"
	"slices"
	"strconv"

	"sagabench/lua"
)

// Key says what was measured.
type Key struct {
	// Probe is the name of a script or of what it is compared with.
	Probe string `json:"probe"`
	// Variant says what was left out of the script; empty: nothing.
	Variant string `json:"variant,omitempty"`
	// Other marks a script of the directory that is compared.
	Other bool `json:"other,omitempty"`
	Shape
}

// probe is something that can be measured again and again.
type probe struct {
	Key
	script  lua.Script // to be loaded; none: no text
	prepare func(*calls, []group)
	words   func(words []string, call group) []string
	items   func(sagas int) int // of an answer that says that all was done; nil: any does
	clear   func(*calls, []group)
}

// load makes what is sent to measure so many calls.
func (p probe) load(plan []group) *load {
	l := &load{pipeline: p.Pipeline, every: p.Every}
	var words []string
	for _, call := range plan {
		words = p.words(words[:0], call)
		l.calls.add(words...)
		if p.items != nil {
			l.wants = append(l.wants, p.items(len(call.sagas)))
		}
	}
	return l
}

// probeOf measures an operation, or a variant of it; ok is false where there can
// be none.
func probeOf(o operation, variant string, s Shape) (_ probe, ok bool) {
	script, ok := o.variant(variant, s)
	if !ok {
		return probe{}, false
	}
	p := probe{
		Key:    o.key(variant, s),
		script: script,
		prepare: func(c *calls, plan []group) {
			if o.saved {
				setAll(c, plan, o.stored(s))
			}
			if o.due != notDue {
				addAll(c, plan, o.due)
			}
		},
		words: func(words []string, call group) []string {
			return o.words(append(words, "EVALSHA", script.SHA1), call, s)
		},
		clear: func(c *calls, plan []group) {
			deleteAll(c, plan)
			// A variant may have left in the index what the whole takes out.
			if o.leaves != notDue || o.due != notDue {
				removeAll(c, plan)
			}
		},
	}
	if variant == whole {
		p.items = o.items
	}
	return p, true
}

// chunk is how many keys or members one command of a preparation holds.
const chunk = 500

func setAll(c *calls, plan []group, value string) {
	for _, call := range plan {
		for _, saga := range call.sagas {
			c.add("SET", saga, value)
		}
	}
}

func deleteAll(c *calls, plan []group) {
	words := []string{"DEL"}
	for _, call := range plan {
		words = append(words, call.sagas...)
		if len(words) > chunk {
			c.add(words...)
			words = words[:1]
		}
	}
	if len(words) > 1 {
		c.add(words...)
	}
}

// addAll makes the sagas due.
func addAll(c *calls, plan []group, when int) {
	score := due(lease)
	if when == overdue {
		score = "1"
	}
	for index, sagas := range byIndex(plan) {
		for part := range slices.Chunk(sagas, chunk) {
			words := []string{"ZADD", index}
			for _, saga := range part {
				words = append(words, score, saga)
			}
			c.add(words...)
		}
	}
}

func removeAll(c *calls, plan []group) {
	for index, sagas := range byIndex(plan) {
		for part := range slices.Chunk(sagas, chunk) {
			c.add(append([]string{"ZREM", index}, part...)...)
		}
	}
}

func byIndex(plan []group) func(yield func(string, []string) bool) {
	all := map[string][]string{}
	for _, call := range plan {
		all[call.index] = append(all[call.index], call.sagas...)
	}
	return maps.All(all)
}

// references are what the scripts are compared with. functions says whether the
// server may be given one.
func references(k keys, functions bool) []probe {
	record, value := k.record(), k.value()
	fixed := func(name string, script string, words ...string) probe {
		p := probe{Key: Key{Probe: name}, words: func(all []string, _ group) []string { return append(all, words...) }}
		if script != "" {
			p.script = newScript(name, script)
			p.words = func(all []string, _ group) []string {
				return append(append(all, "EVALSHA", p.script.SHA1), words...)
			}
		}
		return p
	}
	const set = "return redis.call('SET', KEYS[1], ARGV[1])"
	const small = "dddddd"
	all := []probe{
		fixed(ping, "", "PING"),
		fixed("SET", "", "SET", value, small),
		fixed("GETRANGE", "", "GETRANGE", record, "26", "43"),
		fixed("SETRANGE", "", "SETRANGE", record, "43", "y"),
		fixed("EVAL, one SET", "", "EVAL", set, "1", value, small),
		fixed("EVALSHA, one SET", set, "1", value, small),
		fixed("EVALSHA, ten SETs", "for i = 1, 10 do redis.call('SET', KEYS[1], ARGV[1]) end", "1", value, small),
		fixed("EVALSHA, cjson.decode", "cjson.decode(ARGV[1])", "0", classicGlobal("submitted")),
	}
	if functions {
		all = append(all, fixed("FCALL, one SET", "", "FCALL", k.function(), "1", value, small))
	}
	return all
}

// ping names the probe of a command that does nothing.
const ping = "PING"

func pingKey(pipeline float64) Key {
	return Key{Probe: ping, Shape: Shape{Sagas: 1, Pipeline: pipeline, Conns: connections}}
}

// indexReferences are ZADD and ZREM of one member.
func indexReferences() []probe {
	return []probe{
		{
			Key: Key{Probe: "ZADD"},
			words: func(words []string, call group) []string {
				return append(words, "ZADD", call.index, due(lease), call.sagas[0])
			},
			clear: removeAll,
		},
		{
			Key:     Key{Probe: "ZREM"},
			prepare: func(c *calls, plan []group) { addAll(c, plan, dueLater) },
			words: func(words []string, call group) []string {
				return append(words, "ZREM", call.index, call.sagas[0])
			},
		},
	}
}

// functionLibrary holds the one function that the FCALL probe calls.
func functionLibrary(name string) string {
	return "#!lua name=" + name + "\nredis.register_function('" + name + "', function(keys, args) return redis.call('SET', keys[1], args[1]) end)\n"
}

func (k keys) record() string   { return k.prefix + ":record" }
func (k keys) value() string    { return k.prefix + ":value" }
func (k keys) function() string { return k.prefix + "_set" }

// finished is the key of a saga that ended before the measurement.
func (k keys) finished(n int) string {
	return k.index(0, n%smallIndexes) + ":" + "FINISHED" + strconv.Itoa(1e6+n)
}
