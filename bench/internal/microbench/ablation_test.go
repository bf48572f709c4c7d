package microbench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/lua"
)

func TestStub_ReplacesCallsAndNothingElse(t *testing.T) {
	t.Parallel()
	const source = "local call = redis.call\nif call('SETNX', saga, text) == 1 then\n  redis.call( 'zadd', index)\n  call('TIME')\nend\n"
	got := stub(source, map[string]string{"SETNX": "1", "TIME": "{'1', '2'}"})
	require.Equal(t, "local reply_SETNX = 1\nlocal function stub_SETNX() return reply_SETNX end\n"+
		"local reply_TIME = {'1', '2'}\nlocal function stub_TIME() return reply_TIME end\n"+
		"local call = redis.call\nif stub_SETNX( saga, text) == 1 then\n  redis.call( 'zadd', index)\n  stub_TIME()\nend\n", got)
}

// A command that a script begins to call needs a reply here.
func TestReplies_KnowEveryCommandOfTheScripts(t *testing.T) {
	t.Parallel()
	for _, script := range lua.All() {
		o := operationOf(script)
		found := commandCall.FindAllStringSubmatch(o.script.Source, -1)
		require.NotEmpty(t, found, o.script.Name)
		for _, call := range found {
			_, ok := o.variant(without+strings.ToUpper(call[1]), base)
			require.True(t, ok, "%s calls %s", o.script.Name, call[1])
		}
		_, ok := o.variant(without+"NOSUCH", base)
		require.False(t, ok)
		bare, _ := o.variant(noCommands, base)
		require.Empty(t, commandCall.FindAllString(bare.Source, -1), o.script.Name)
	}
}

func TestLineOf_IsTheLineInItsFile(t *testing.T) {
	t.Parallel()
	script := lua.Script{Name: "save", Source: "-- change: the beginning\nlocal a = call('TIME')\nlocal b = call('GET', k)\n\n-- save: puts\n\nreturn call('GET', k)\n"}
	require.Equal(t, "save.lua:3", lineOf(script, "GET"))
	require.Equal(t, "change.lua:2", lineOf(script, "TIME"))
	require.Empty(t, lineOf(script, "SET"))
	for _, s := range lua.All() {
		require.True(t, strings.HasPrefix(lineOf(s, "TIME"), "change.lua:"), s.Name)
	}
}
