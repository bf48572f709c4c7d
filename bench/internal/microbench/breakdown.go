package microbench

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sagabench/lua"
)

// Causes of a script's price.
const (
	CauseNetwork   = "network"   // reading and writing sockets, waiting for them
	CauseDispatch  = "dispatch"  // what the server does for any command
	CauseArguments = "arguments" // parsing the call, starting the script, KEYS and ARGV
	CauseLua       = "lua"       // the script without its commands
	CauseCommand   = "command"   // a command with passing its arguments and its reply
	CauseRest      = "rest"      // what the differences do not explain; noise can make it negative
)

// Part is one cause's part of a price.
type Part struct {
	Cause   string   `json:"cause"`
	Command string   `json:"command,omitempty"`
	US      float64  `json:"us"`
	Calls   float64  `json:"calls,omitempty"`  // of the command
	OwnUS   *float64 `json:"own_us,omitempty"` // of the command alone, by the server's clock
	Line    string   `json:"place,omitempty"`  // in the script's file: "save.lua:31"
}

// Breakdown is a price by its causes, in µs per saga.
type Breakdown struct {
	Key
	TotalUS   float64 `json:"total_us"` // one call per round trip
	Parts     []Part  `json:"parts"`
	Costliest string  `json:"dearest"` // the line of the costliest command
}

// ablation is the CPU of one call in each variant, in µs.
type ablation struct {
	alone      float64            // the script, one call per round trip; all others are pipelined
	whole      float64            // the script
	ping       float64            // a command that does nothing
	empty      float64            // a script that does nothing, with the same KEYS and ARGV
	noCommands float64            // the script without its commands
	without    map[string]float64 // the script without one command
}

// parts returns the parts per saga. Commands are ordered by price, the costliest
// first.
func (a ablation) parts(sagas int) []Part {
	var commands []Part
	rest := a.whole - a.noCommands
	for _, command := range slices.Sorted(maps.Keys(a.without)) {
		price := a.whole - a.without[command]
		rest -= price
		commands = append(commands, Part{Cause: CauseCommand, Command: command, US: price})
	}
	slices.SortStableFunc(commands, func(x, y Part) int { return cmp.Compare(y.US, x.US) })
	parts := append([]Part{
		{Cause: CauseNetwork, US: a.alone - a.whole},
		{Cause: CauseDispatch, US: a.ping},
		{Cause: CauseArguments, US: a.empty - a.ping},
		{Cause: CauseLua, US: a.noCommands - a.empty},
	}, append(commands, Part{Cause: CauseRest, US: rest})...)
	for i := range parts {
		parts[i].US /= float64(sagas)
	}
	return parts
}

// breakdowns returns one for every script with all variants measured.
func (b *bench) breakdowns() []Breakdown {
	all := []Breakdown{}
	for _, script := range lua.All() {
		for _, sagas := range detailedBatches {
			if one, ok := b.breakdown(script, base.batch(sagas)); ok {
				all = append(all, one)
			}
		}
	}
	return all
}

func (b *bench) breakdown(script lua.Script, s Shape) (Breakdown, bool) {
	key := Key{Case: script.Name, Shape: s}
	reference := b.byKey[key]
	if !reference.measured() {
		return Breakdown{}, false
	}
	// A busy machine slows everything down for a while. So cases are compared within a
	// round, and the median of the ratios is applied to the price of the whole script.
	perCall := reference.estimate(sample.cpuPerCall).Median
	price := func(key Key) float64 {
		ratio := estimate(slices.Collect(maps.Values(b.byKey[key].ratios(reference))), usual)
		if ratio == nil {
			return 0
		}
		return ratio.Median * perCall
	}
	variant := func(name string) Key { return Key{Case: script.Name, Variant: name, Shape: s} }
	a := ablation{
		alone: price(Key{Case: script.Name, Shape: s.with(s.Sagas, 1)}), whole: perCall,
		ping:  price(Key{Case: ping, Shape: pingShape(s.Pipeline)}),
		empty: price(variant(empty)), noCommands: price(variant(noCommands)), without: map[string]float64{},
	}
	if a.alone*a.ping*a.empty*a.noCommands == 0 {
		return Breakdown{}, false
	}
	for command := range reference.inside() {
		if us := price(variant(without + strings.ToUpper(command))); us > 0 {
			a.without[strings.ToUpper(command)] = us
		}
	}
	all := Breakdown{Key: key, TotalUS: a.alone / float64(s.Sagas), Parts: a.parts(s.Sagas)}
	for i := range all.Parts {
		p := &all.Parts[i]
		if p.Cause != CauseCommand {
			continue
		}
		perCall := reference.inside()[strings.ToLower(p.Command)]
		own := perCall.US / float64(s.Sagas)
		p.Line, p.OwnUS, p.Calls = lineOf(script, p.Command), &own, perCall.Calls/float64(s.Sagas)
		if all.Costliest == "" { // commands are in order
			all.Costliest = p.Line + " " + p.Command
		}
	}
	return all, true
}
