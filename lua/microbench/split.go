package microbench

import (
	"cmp"
	"maps"
	"slices"
)

// Causes of a script's price.
const (
	CauseNetwork   = "network"   // reading and writing sockets, waiting for them
	CauseDispatch  = "dispatch"  // finding the command, parsing a short one, its answer
	CauseArguments = "arguments" // parsing the rest, the script's beginning, KEYS and ARGV
	CauseLua       = "lua"       // the script without its commands
	CauseCommand   = "command"   // a command: itself, and handing over what it is given and answers
	CauseRest      = "rest"      // what the differences do not explain; noise may make it negative
)

// Part is one cause's part of a price.
type Part struct {
	Cause   string   `json:"cause"`
	Command string   `json:"command,omitempty"`
	US      float64  `json:"us"`
	Calls   float64  `json:"calls,omitempty"`  // of the command
	OwnUS   *float64 `json:"own_us,omitempty"` // of the command without the handing over, by the server's clock
	Place   string   `json:"place,omitempty"`  // in the script's file: "save.lua:31"
}

// Split is a price by its causes, in µs per saga.
type Split struct {
	Key
	TotalUS float64 `json:"total_us"` // one call to a round trip
	Parts   []Part  `json:"parts"`
	Dearest string  `json:"dearest"` // the command's line that costs most
}

// ablation is what differences are made of: CPU of one call, in µs.
type ablation struct {
	alone   float64            // the script, one call to a round trip
	whole   float64            // many, as all that follow
	ping    float64            // a command that does nothing
	empty   float64            // a script that does nothing, with the same KEYS and ARGV
	noCalls float64            // the script without its commands
	without map[string]float64 // the script without one of them
}

// split takes a price apart. Parts are per saga; those that are commands are
// ordered by their price, the dearest first.
func split(a ablation, sagas float64) (total float64, parts []Part) {
	parts = []Part{
		{Cause: CauseNetwork, US: a.alone - a.whole},
		{Cause: CauseDispatch, US: a.ping},
		{Cause: CauseArguments, US: a.empty - a.ping},
		{Cause: CauseLua, US: a.noCalls - a.empty},
	}
	var commands []Part
	for _, command := range slices.Sorted(maps.Keys(a.without)) {
		commands = append(commands, Part{Cause: CauseCommand, Command: command, US: a.whole - a.without[command]})
	}
	slices.SortStableFunc(commands, func(x, y Part) int { return cmp.Compare(y.US, x.US) })
	rest := a.whole - a.noCalls
	for _, c := range commands {
		rest -= c.US
	}
	parts = append(append(parts, commands...), Part{Cause: CauseRest, US: rest})
	for i := range parts {
		parts[i].US /= sagas
	}
	return a.alone / sagas, parts
}

// splits takes apart every script that all variants were measured of.
func (b *Bench) splits() []Split {
	var all []Split
	for _, o := range operations(ours()) {
		for _, sagas := range splitBatches {
			if s, ok := b.split(o, base.of(sagas)); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

func (b *Bench) split(o operation, s Shape) (Split, bool) {
	key := o.key(whole, s)
	cell := b.cellOf(key)
	if cell == nil || len(cell.samples) == 0 {
		return Split{}, false
	}
	perCall := cell.figure(sample.cpuPerCall).Median
	// Of a busy machine everything takes longer for a while: what is measured in
	// the same round is compared, and its ratio kept.
	like := func(key Key) float64 {
		if ratio := figureOf(slices.Collect(maps.Values(ratios(b.cellOf(key), cell)))); ratio != nil {
			return ratio.Median * perCall
		}
		return 0
	}
	alone := key
	alone.Pipeline = 1
	a := ablation{
		alone: like(alone), whole: perCall, ping: like(pingKey(s.Pipeline)),
		empty: like(o.key(empty, s)), noCalls: like(o.key(noCalls, s)), without: map[string]float64{},
	}
	for _, c := range b.cells {
		if command, is := c.leavesOut(); is && c.Key == o.key(withoutIt+command, s) && len(c.samples) > 0 {
			a.without[command] = like(c.Key)
		}
	}
	if a.alone*a.ping*a.empty*a.noCalls == 0 {
		return Split{}, false
	}
	result := Split{Key: key}
	result.TotalUS, result.Parts = split(a, s.Sagas)
	for i := range result.Parts {
		b.explain(o, cell, &result, &result.Parts[i])
	}
	return result, true
}

// explain says where a command is called, and what it costs by itself.
func (b *Bench) explain(o operation, c *cell, s *Split, p *Part) {
	if p.Cause != CauseCommand {
		return
	}
	p.Place = place(o.script, p.Command)
	p.Calls, p.OwnUS = c.inside(p.Command)
	if s.Dearest == "" { // they are in order
		s.Dearest = p.Place + " " + p.Command
	}
}
