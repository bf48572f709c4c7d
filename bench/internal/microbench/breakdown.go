package microbench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sagabench/internal/format"
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

// Part is one cause's part of a price. Each is estimated by itself, so the parts add up to
// the price only about.
type Part struct {
	Cause   string    `json:"cause"`
	Command string    `json:"command,omitempty"`
	US      Estimate  `json:"us"`
	Calls   float64   `json:"calls,omitempty"`  // of the command
	OwnUS   *Estimate `json:"own_us,omitempty"` // of the command alone, by the server's clock
	Line    string    `json:"place,omitempty"`  // in the script's file: "save.lua:31"
}

// Breakdown is a price by its causes, in µs per saga.
type Breakdown struct {
	Key
	TotalUS    Estimate `json:"total_us"` // one call per round trip
	Parts      []Part   `json:"parts"`
	CommandsUS Estimate `json:"commands_us"` // of all commands
	Costliest  string   `json:"dearest"`     // the line of the costliest command, or why it is not known
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

// costs are prices by cause, and of commands by cause and command.
type costs map[[2]string]float64

// causes returns the price of a call by its causes.
func (a ablation) causes() costs {
	all := costs{
		{CauseNetwork}: a.alone - a.whole, {CauseDispatch}: a.ping,
		{CauseArguments}: a.empty - a.ping, {CauseLua}: a.noCommands - a.empty,
	}
	for command, us := range a.without {
		all[[2]string{CauseCommand, command}] = a.whole - us
		all[[2]string{CauseCommand}] += a.whole - us
	}
	all[[2]string{CauseRest}] = a.whole - a.noCommands - all[[2]string{CauseCommand}]
	return all
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
	reference := b.byKey[Key{Case: script.Name, Shape: s}]
	rounds := b.ablations(script, s)
	if len(rounds) == 0 {
		return Breakdown{}, false
	}
	perSaga := func(of func(ablation) float64) Estimate {
		var values []float64
		for _, a := range rounds {
			values = append(values, of(a)/float64(s.Sagas))
		}
		return *estimate(values, usual)
	}
	part := func(cause, command string) Part {
		return Part{Cause: cause, Command: command, US: perSaga(func(a ablation) float64 { return a.causes()[[2]string{cause, command}] })}
	}
	var commands []Part
	for command := range rounds[0].without {
		p := part(CauseCommand, command)
		inside := reference.inside()[strings.ToLower(command)]
		own := reference.estimate(func(one sample) float64 { return one.inside[strings.ToLower(command)].US / one.sagas })
		p.Line, p.OwnUS, p.Calls = lineOf(script, command), &own, inside.Calls/float64(s.Sagas)
		commands = append(commands, p)
	}
	slices.SortFunc(commands, func(x, y Part) int {
		return cmp.Or(cmp.Compare(y.US.Median, x.US.Median), cmp.Compare(x.Command, y.Command))
	})
	return Breakdown{
		Key: reference.Key, TotalUS: perSaga(func(a ablation) float64 { return a.alone }),
		Parts: slices.Concat([]Part{part(CauseNetwork, ""), part(CauseDispatch, ""), part(CauseArguments, ""), part(CauseLua, "")},
			commands, []Part{part(CauseRest, "")}),
		CommandsUS: part(CauseCommand, "").US,
		Costliest:  costliest(commands),
	}, true
}

// ablations returns one for each round that measured all variants of the script. A busy
// machine slows everything down for a while. So cases are compared within a round, and
// their ratios are applied to the median price of the whole script.
func (b *bench) ablations(script lua.Script, s Shape) []ablation {
	reference := b.byKey[Key{Case: script.Name, Shape: s}]
	if !reference.measured() {
		return nil
	}
	perCall := reference.estimate(sample.cpuPerCall).Median
	ratios := func(key Key) map[int]float64 { return b.byKey[key].ratios(reference) }
	variant := func(name string) map[int]float64 { return ratios(Key{Case: script.Name, Variant: name, Shape: s}) }
	leftOut := map[string]map[int]float64{}
	for command := range reference.inside() {
		command = strings.ToUpper(command)
		if all := variant(without + command); len(all) > 0 {
			leftOut[command] = all
		}
	}
	alone, pings := ratios(Key{Case: script.Name, Shape: s.with(s.Sagas, 1)}), ratios(Key{Case: ping, Shape: pingShape(s.Pipeline)})
	empties, bare := variant(empty), variant(noCommands)

	var all []ablation
	for round := range reference.samples {
		complete := true
		us := func(ratios map[int]float64) float64 {
			ratio, measured := ratios[round]
			complete = complete && measured
			return ratio * perCall
		}
		a := ablation{alone: us(alone), whole: perCall, ping: us(pings), empty: us(empties), noCommands: us(bare), without: map[string]float64{}}
		for command, ratios := range leftOut {
			a.without[command] = us(ratios)
		}
		if complete {
			all = append(all, a)
		}
	}
	return all
}

// costliest returns the line of the costliest command. A command is that if its whole
// interval is above 0 and above the intervals of the others. commands are ordered by price.
func costliest(commands []Part) string {
	if len(commands) == 0 {
		return ""
	}
	first := commands[0]
	switch {
	case !first.US.known():
		return fmt.Sprintf("cannot tell: %s, an interval needs %d", format.Plural(first.US.N, "round"), minRounds)
	case first.US.Low <= 0:
		return "cannot tell: no command's price is above 0 for certain"
	}
	var names []string
	for _, p := range commands {
		if p.US.High >= first.US.Low {
			names = append(names, p.Line+" "+p.Command)
		}
	}
	if len(names) > 1 {
		return "cannot tell which: " + strings.Join(names, ", ")
	}
	return names[0]
}
