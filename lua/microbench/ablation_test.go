package microbench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/lua"
)

func TestWithout_ReplacesCallsAndNothingElse(t *testing.T) {
	t.Parallel()
	const source = "local call = redis.call\nif call('SETNX', saga, text) == 1 then\n  redis.call( 'zadd', index)\n  call('TIME')\nend\n"
	got := without(source, map[string]string{"SETNX": "1", "TIME": "{'1', '2'}"})
	require.Equal(t, "local answer_SETNX = 1\nlocal function instead_of_SETNX() return answer_SETNX end\n"+
		"local answer_TIME = {'1', '2'}\nlocal function instead_of_TIME() return answer_TIME end\n"+
		"local call = redis.call\nif instead_of_SETNX( saga, text) == 1 then\n  redis.call( 'zadd', index)\n  instead_of_TIME()\nend\n", got)
}

// A command that a script learns to call needs an answer here.
func TestAnswers_KnowEveryCommandOfTheScripts(t *testing.T) {
	t.Parallel()
	for _, o := range operations(lua.All()) {
		found := callOf.FindAllStringSubmatch(o.script.Source, -1)
		require.NotEmpty(t, found, o.script.Name)
		for _, call := range found {
			_, ok := o.variant(withoutIt+strings.ToUpper(call[1]), base)
			require.True(t, ok, "%s calls %s", o.script.Name, call[1])
		}
		_, ok := o.variant(withoutIt+"NOSUCH", base)
		require.False(t, ok)
		bare, _ := o.variant(noCalls, base)
		require.Empty(t, callOf.FindAllString(bare.Source, -1), o.script.Name)
	}
}

func TestPlace_IsTheLineInItsFile(t *testing.T) {
	t.Parallel()
	script := lua.Script{Name: "save", Source: "-- change: the beginning\nlocal a = call('TIME')\nlocal b = call('GET', k)\n\n-- save: puts\n\nreturn call('GET', k)\n"}
	require.Equal(t, "save.lua:3", place(script, "GET"))
	require.Equal(t, "change.lua:2", place(script, "TIME"))
	require.Empty(t, place(script, "SET"))
	for _, s := range lua.All() {
		require.True(t, strings.HasPrefix(place(s, "TIME"), "change.lua:"), s.Name)
	}
}
