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

// A script's price is broken down by leaving parts of it out: the price of a part is the
// difference to the whole script.

// Variants of a script.
const (
	whole      = ""            // unchanged
	empty      = "empty"       // does nothing, with the same KEYS and ARGV
	noCommands = "no commands" // runs no command
	without    = "without "    // runs all but the command that follows
)

// commandCall matches the beginning of a call of a command.
var commandCall = regexp.MustCompile(`\b(?:redis\.)?p?call\s*\(\s*'([A-Za-z]+)'\s*(,?)`)

// stub replaces the calls of some commands by a function that takes the same arguments
// and returns a fixed reply. The replies are Lua expressions by command, in upper case.
func stub(source string, replies map[string]string) string {
	var head strings.Builder
	for _, command := range slices.Sorted(maps.Keys(replies)) {
		fmt.Fprintf(&head, "local reply_%s = %s\nlocal function stub_%[1]s() return reply_%[1]s end\n", command, replies[command])
	}
	return head.String() + commandCall.ReplaceAllStringFunc(source, func(call string) string {
		command := strings.ToUpper(commandCall.FindStringSubmatch(call)[1])
		if _, stubbed := replies[command]; !stubbed {
			return call
		}
		return "stub_" + command + "("
	})
}

// replies are what the operation's commands return when everything succeeds, as
// Lua expressions. No string in them holds a quote or a control character.
func (o operation) replies(s Shape) map[string]string {
	return map[string]string{
		// Later than any score, so that what is due stays due.
		"TIME":      `{'9999999999', '0'}`,
		"SETNX":     "1",
		"GET":       "'" + o.stored(s) + "'",
		"SET":       "{ok = 'OK'}",
		"GETRANGE":  "'" + o.head(s) + "'",
		"SETRANGE":  "100",
		"PEXPIREAT": "1",
		"DEL":       "1",
		"ZADD":      "1",
		"ZREM":      "1",
		"ZSCORE":    "'1'",
	}
}

// variant returns the operation's script with parts left out. ok is false if the reply
// of the command to leave out is not known.
func (o operation) variant(name string, s Shape) (script lua.Script, ok bool) {
	command, one := strings.CutPrefix(name, without)
	replies := o.replies(s)
	reply, known := replies[command]
	switch {
	case name == whole:
		return o.script, true
	case name == empty:
		return newScript(o.script.Name, "return {}\n"), true
	case name == noCommands:
		return newScript(o.script.Name, stub(o.script.Source, replies)), true
	case one && known:
		return newScript(o.script.Name, stub(o.script.Source, map[string]string{command: reply})), true
	default:
		return lua.Script{}, false
	}
}

func newScript(name, source string) lua.Script {
	sum := sha1.Sum([]byte(source))
	return lua.Script{Name: name, Source: source, SHA1: hex.EncodeToString(sum[:])}
}

// lineOf returns where a script calls a command, as "save.lua:31". The script's own file
// is searched before change.lua, which all scripts begin with.
func lineOf(script lua.Script, command string) string {
	common, own := "", script.Source
	if at := strings.Index(own, "\n-- "+script.Name+": "); at >= 0 {
		common, own = own[:at+1], own[at+1:]
	}
	for _, file := range []struct{ name, source string }{{script.Name, own}, {"change", common}} {
		for i, line := range strings.Split(file.source, "\n") {
			for _, call := range commandCall.FindAllStringSubmatch(line, -1) {
				if strings.EqualFold(call[1], command) {
					return file.name + ".lua:" + strconv.Itoa(i+1)
				}
			}
		}
	}
	return ""
}
