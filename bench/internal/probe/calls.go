package probe

import (
	"regexp"
	"strings"
)

// runScript are the commands that run a script or function: one call by a
// client, whatever happens inside.
var runScript = [...]string{"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"}

// housekeeping are commands that are nobody's saga: the probe's own, and those
// by which replicas follow.
var housekeeping = [...]string{"info", "replconf", "psync", "sync"}

// clientCalls counts the commands that clients sent between two looks; nil when
// that cannot be known.
//
// Redis counts commands that a script calls in the same place as those that
// clients send (so does total_commands_processed). So the commands that the
// scripts call are left out, which also leaves out the same commands sent
// directly: with scripts, that is a lower bound. When scripts ran and nobody
// said what they call, nothing is known.
func clientCalls(before, after map[string]int64, scripts []string) *int64 {
	delta := func(command string) int64 { return after[command] - before[command] }
	ran := false
	for _, command := range runScript {
		ran = ran || delta(command) > 0
	}
	if ran && len(scripts) == 0 {
		return nil
	}
	leaveOut := map[string]bool{}
	for _, command := range housekeeping {
		leaveOut[command] = true
	}
	if ran {
		for _, script := range scripts {
			for _, command := range commandsIn(script) {
				leaveOut[command] = true
			}
		}
	}
	var calls int64
	for command := range after {
		// Redis 7 names subcommands, as in config|get; scripts name the command.
		container, _, _ := strings.Cut(command, "|")
		if !leaveOut[container] {
			calls += delta(command)
		}
	}
	return &calls
}

// commandsIn are the commands that a Lua script calls, by their names in lower
// case: redis.call('NAME', …), pcall, or a local name that ends in call.
func commandsIn(script string) (commands []string) {
	for _, match := range regexp.MustCompile(`call\s*\(\s*['"](\w+)['"]`).FindAllStringSubmatch(script, -1) {
		commands = append(commands, strings.ToLower(match[1]))
	}
	return commands
}
