package microbench

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sagabench/lua"
)

// A script is taken apart by leaving parts of it out: what the whole costs more
// than the rest is the price of the part.

// Variants of a script.
const (
	whole     = ""            // as it is
	empty     = "empty"       // does nothing, with the same KEYS and ARGV
	noCalls   = "no commands" // calls no command
	withoutIt = "without "    // calls all but the command that follows
)

// nothing is a script that does nothing.
const nothing = "return {}\n"

// callOf matches the beginning of a call of a command that a script names.
var callOf = regexp.MustCompile(`\b(?:redis\.)?p?call\s*\(\s*'([A-Za-z]+)'\s*(,?)`)

// without is a script in which the calls of some commands are replaced by a
// function that takes the same arguments and answers at once. The commands are
// keys of answers, in upper case, each with an expression of Lua.
func without(source string, answers map[string]string) string {
	var head strings.Builder
	for _, command := range slices.Sorted(maps.Keys(answers)) {
		fmt.Fprintf(&head, "local answer_%s = %s\nlocal function instead_of_%[1]s() return answer_%[1]s end\n", command, answers[command])
	}
	return head.String() + callOf.ReplaceAllStringFunc(source, func(call string) string {
		command := strings.ToUpper(callOf.FindStringSubmatch(call)[1])
		if _, left := answers[command]; !left {
			return call
		}
		return "instead_of_" + command + "("
	})
}

// answers are what the operation's commands answer when all goes well, as
// expressions of Lua.
func (o operation) answers(s Shape) map[string]string {
	return map[string]string{
		// Later than any score, so that what is due stays so.
		"TIME":      `{'9999999999', '0'}`,
		"SETNX":     "1",
		"GET":       quote(o.stored(s)),
		"SET":       "{ok = 'OK'}",
		"GETRANGE":  quote(o.head(s)),
		"SETRANGE":  "100",
		"PEXPIREAT": "1",
		"DEL":       "1",
		"ZADD":      "1",
		"ZREM":      "1",
		"ZSCORE":    "'1'",
	}
}

// quote is text as a string of Lua; it holds no control characters.
func quote(text string) string { return "'" + text + "'" }

// variant is the operation's script with parts left out; ok is false where
// nobody knows what such a part would answer.
func (o operation) variant(name string, s Shape) (_ lua.Script, ok bool) {
	answers := o.answers(s)
	source := o.script.Source
	command, one := strings.CutPrefix(name, withoutIt)
	switch {
	case name == empty:
		source = nothing
	case name == noCalls:
		source = without(source, answers)
	case one:
		answer, known := answers[command]
		if !known {
			return lua.Script{}, false
		}
		source = without(source, map[string]string{command: answer})
	}
	return newScript(o.script.Name, source), true
}

func newScript(name, source string) lua.Script {
	sum := sha1.Sum([]byte(source))
	return lua.Script{Name: name, Source: source, SHA1: hex.EncodeToString(sum[:])}
}

// place is where a script calls a command: "save.lua:31". Its own file goes before
// the beginning that all share, change.lua.
func place(script lua.Script, command string) string {
	common, own := "", script.Source
	if at := strings.Index(own, "\n-- "+script.Name+": "); at >= 0 {
		common, own = own[:at+1], own[at+1:]
	}
	if at := lineOf(own, command); at > 0 {
		return script.Name + ".lua:" + strconv.Itoa(at)
	}
	if at := lineOf(common, command); at > 0 {
		return "change.lua:" + strconv.Itoa(at)
	}
	return ""
}

// lineOf is the first line, from 1, that calls the command, or 0.
func lineOf(source, command string) int {
	at := 0
	for line := range strings.Lines(source) {
		at++
		for _, call := range callOf.FindAllStringSubmatch(line, -1) {
			if strings.EqualFold(call[1], command) {
				return at
			}
		}
	}
	return 0
}
