package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/microbench"
	"sagabench/bench/internal/progress"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
)

func luaResult(t *testing.T, stdout string) microbench.Summary {
	t.Helper()
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(stdout), &keys))
	require.Equal(t, []string{"check", "environment", "kind", "lua", "run", "schema", "validity"}, slices.Sorted(maps.Keys(keys)))
	var s microbench.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.NotContains(t, string(keys["lua"]), "null,\n      \"", "lists without entries are empty")
	return s
}

func TestLua_Start(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run("lua", "--start", "--duration", "1s", "--json", "--out", "here")
	require.Equal(t, 0, got.code, got.stderr)
	s := luaResult(t, got.stdout)
	require.True(t, s.Validity.Valid)
	require.Equal(t, "redis", s.Run.Store.Driver)
	require.True(t, s.Run.SharedHost)
	require.Contains(t, got.stderr, "measuring")

	require.Len(t, s.Lua.Servers, 1)
	one := s.Lua.Servers[0]
	require.Len(t, one.Breakdowns, 10)
	require.Positive(t, one.Ceilings[0].PerS.Median)
	require.Positive(t, one.Baselines[0].Ratios["1"].Median)
	require.Greater(t, one.Baselines[0].BytesIn, one.Ceilings[0].BytesIn)

	require.Equal(t, []string{"here"}, p.files())
	written, err := os.ReadFile(filepath.Join(p.dir, "here", "summary.json"))
	require.NoError(t, err)
	require.Equal(t, got.stdout, string(written))
	page, err := os.ReadFile(filepath.Join(p.dir, "here", "report.html"))
	require.NoError(t, err)
	charts := 0 // bars for the scripts, alone and in a batch
	if one.Method.Rounds >= 6 {
		charts = 2
	}
	require.Equal(t, charts, bytes.Count(page, []byte("<svg ")))
	require.FileExists(t, filepath.Join(p.dir, "here", "report.md"))

	again := p.run("lua", "--start", "--out", "here")
	require.Equal(t, exitError, again.code)
	require.Contains(t, again.stderr, "not empty")
}

// A server that is somebody else's: without the right to run CONFIG and much else,
// with keys of its own, and nothing of ours left behind.
func TestLua_OfAServerThatIsNotOurs(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"user": "bench on >word ~b*:* -@all +ping +select +info +time +script|load +evalsha +get +set +setnx +del" +
			" +getrange +setrange +pexpire +pexpireat +zadd +zrem +zscore",
	}})
	theirs := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer theirs.Close()
	require.NoError(t, theirs.Set(t.Context(), "theirs", "x", 0).Err())
	p := newProgram(t)
	got := p.run("lua", "--redis", "redis://bench:word@"+server.Addr(), "--duration", "1s", "--out", "here", "--verbose")
	require.Equal(t, 0, got.code, got.stderr)
	require.NotContains(t, got.stdout+got.stderr, "word@")
	for _, want := range []string{
		"sagas/s", "settings: CONFIG: NOPERM", "baseline branch: NOPERM",
		"go run bench/main.go lua --redis 'redis://bench:***@",
	} {
		require.Contains(t, got.stdout, want)
	}
	keys, err := theirs.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"theirs"}, keys)
}

func TestLua_Against(t *testing.T) {
	t.Parallel()
	got := newProgram(t).run("lua", "--start", "--against", repository(t, "lua"), "--duration", "1s", "--json")
	require.Equal(t, 0, got.code, got.stderr)
	s := luaResult(t, got.stdout)
	require.Len(t, s.Lua.Servers, 1)
	compared := map[string]bool{}
	for _, c := range s.Lua.Servers[0].Comparisons {
		compared[c.Case] = true
		require.Positive(t, c.Ratio.Median)
		require.Positive(t, c.Ratio.N)
	}
	require.Len(t, compared, 5)
}

// repository is a directory of this repository.
func repository(t *testing.T, dir string) string {
	path, err := filepath.Abs(filepath.Join("../../..", dir))
	require.NoError(t, err)
	return path
}

// Ctrl-C ends it early, with what it has, and leaves nothing running.
func TestLua_Interrupted(t *testing.T) {
	race.Skip(t) // package microbench ends measurements early
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("lua", "--start", "--duration", "1h", "--json", "--out", "here")
	stdout, stderr := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "measuring")
	require.NoError(t, err)
	redis := childOf(t, cmd.Process.Pid)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), stderr)
	s := luaResult(t, stdout.String())
	require.False(t, s.Validity.Valid)
	require.Contains(t, s.Validity.Because[0], "incomplete: interrupted")
	require.NotEmpty(t, s.Lua.Servers[0].Prices)
	require.ErrorIs(t, syscall.Kill(redis, 0), syscall.ESRCH)
}

func TestLua_RefusesWrongInput(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"two servers":    {[]string{"--redis", "redis://h", "--start"}, "--redis: it names a server that runs"},
		"no Redis":       {[]string{"--redis", "pebble"}, "--redis: pebble is no Redis"},
		"unreachable":    {[]string{"--redis", "redis://:topsecret@127.0.0.1:1"}, "redis at 127.0.0.1:1: dial"},
		"no URL":         {[]string{"--redis", "redis://:topsecret@[h"}, "redis://[user:password@]host:port"},
		"no binary":      {[]string{"--redis-server", "/not/there"}, "/not/there"},
		"no scripts":     {[]string{"--start", "--against", t.TempDir()}, "--against: lua: read script save"},
		"no duration":    {[]string{"--start", "--duration", "0s"}, "--duration: 0s, must be more than 0"},
		"no nodes":       {[]string{"--start", "--nodes", "0"}, "--nodes: 0, must be 1 to 16"},
		"nodes of a URL": {[]string{"--redis", "redis://h", "--nodes", "3"}, "--nodes: it is for --start and --redis-server"},
		"an argument":    {[]string{"redis"}, `unknown command "redis"`},
		"unknown format": {[]string{"--duration", "soon"}, "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			got := p.run(append([]string{"lua"}, tt.args...)...)
			require.Equal(t, exitError, got.code)
			require.Contains(t, got.stderr, tt.says)
			require.NotContains(t, got.stderr, "topsecret")
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
			require.Empty(t, got.stdout)
			require.Empty(t, p.files())
		})
	}
}

// Elsewhere than on a terminal, one line per case would be too much.
func TestLuaProgress_PrintsALineNowAndThen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &luaProgress{Display: progress.NewDisplay(&out)}
	p.show(microbench.Progress{Doing: "preloading"})
	p.show(microbench.Progress{Doing: "preloading"})
	for i := range 100 {
		p.show(microbench.Progress{Round: 1, Done: i, Of: 100, Doing: "save", Planned: time.Minute})
	}
	require.Equal(t, "preloading\nmeasuring    0/60 s round 1,  0%: save\n", out.String())
}
