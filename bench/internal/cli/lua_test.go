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

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/lua/microbench"
)

func luaResult(t *testing.T, stdout string) luaSummary {
	t.Helper()
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(stdout), &keys))
	require.Equal(t, []string{"check", "environment", "kind", "lua", "run", "schema", "validity"}, slices.Sorted(maps.Keys(keys)))
	var s luaSummary
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
	require.Equal(t, "D0", s.Run.Store.Durability)
	require.True(t, s.Run.SharedHost)
	require.Positive(t, s.Check.Acknowledged)
	require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated)
	require.Contains(t, got.stderr, "measuring")

	servers := s.Lua.Servers
	require.GreaterOrEqual(t, len(servers), 1)
	full := servers[0]
	require.Len(t, full.Splits, 10)
	require.Positive(t, full.Ceilings[0].PerS)
	require.Positive(t, full.Classic[0].Ratios["1"])
	require.Greater(t, full.Classic[0].BytesIn, full.Ceilings[0].BytesIn)
	require.NotEmpty(t, full.Records)
	for _, one := range servers {
		require.Len(t, one.Agreements, 1, one.Label())
		require.Positive(t, one.Agreements[0].RunUS)
		require.Positive(t, one.Agreements[0].Ratio)
	}
	if threads := full.Server.Settings["io-threads"]; threads != "" {
		require.Len(t, servers, 2)
		require.Equal(t, "2", servers[1].Server.Settings["io-threads"])
		require.True(t, servers[1].Method.Brief)
	}

	require.Equal(t, []string{"here"}, p.files())
	written, err := os.ReadFile(filepath.Join(p.dir, "here", "summary.json"))
	require.NoError(t, err)
	require.Equal(t, got.stdout, string(written))
	page, err := os.ReadFile(filepath.Join(p.dir, "here", "report.html"))
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(page, []byte("<svg ")), "bars for the scripts, alone and in a batch")
	require.FileExists(t, filepath.Join(p.dir, "here", "report.md"))
	_, err = os.Stat(filepath.Join(p.dir, "here", "runs", "1", "summary.json"))
	require.NoError(t, err)

	again := p.run("lua", "--start", "--out", "here")
	require.Equal(t, exitError, again.code)
	require.Contains(t, again.stderr, "not empty")
}

// A server that is somebody else's: without the right to run CONFIG and much else,
// with keys of its own, and no library or setting of ours left behind.
func TestLua_OfAServerThatIsNotOurs(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"user": "bench on >word ~b*:* -@all +ping +select +info +time +script|load +evalsha +get +set +setnx +del" +
			" +getrange +setrange +pexpire +pexpireat +pttl +scan +zadd +zrem +zscore +zscan +zcount +zrange +zrangebyscore +unlink",
	}})
	theirs := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer theirs.Close()
	require.NoError(t, theirs.Set(t.Context(), "theirs", "x", 0).Err())
	p := newProgram(t)
	got := p.run("lua", "--redis", "redis://bench:word@"+server.Addr(), "--duration", "1s", "--out", "here")
	require.Equal(t, 0, got.code, got.stderr)
	require.NotContains(t, got.stdout+got.stderr, "word@")
	for _, want := range []string{
		"sagas/s", "save.lua:", "A run of sagas, and the sum of its scripts",
		"its settings were not read: CONFIG: NOPERM", "FCALL: its function would stay on this server", "classic branch: NOPERM",
		"go run bench/main.go lua --redis 'redis://bench:***@",
	} {
		require.Contains(t, got.stdout, want)
	}
	keys, err := theirs.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"theirs"}, keys)
	functions, err := theirs.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
	require.NoError(t, err)
	require.Empty(t, functions)
}

func TestLua_Against(t *testing.T) {
	t.Parallel()
	got := newProgram(t).run("lua", "--start", "--against", repository(t, "lua"), "--duration", "1s", "--json")
	require.Equal(t, 0, got.code, got.stderr)
	s := luaResult(t, got.stdout)
	require.Len(t, s.Lua.Servers, 1)
	compared := map[string]bool{}
	for _, c := range s.Lua.Servers[0].Comparisons {
		compared[c.Probe] = true
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
	require.Contains(t, s.Validity.Warnings[0], "incomplete: interrupted")
	require.NotEmpty(t, s.Lua.Servers[0].Prices)
	require.ErrorIs(t, syscall.Kill(redis, 0), syscall.ESRCH)
}

func TestLua_RefusesWrongInput(t *testing.T) {
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

// A bar on a terminal is one thing; elsewhere nobody wants a line per probe.
func TestLuaProgress_SaysALineNowAndThen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := (&app{stderr: &out}).newLuaProgress(time.Minute)
	p.begin(time.Minute)
	for i := range 100 {
		p.show(microbench.Progress{Round: 1, Done: i, Of: 100, Doing: "save"})
	}
	p.show(microbench.Progress{Doing: "memory of a saga"})
	p.show(microbench.Progress{Doing: "memory of a saga"})
	p.done()
	require.Equal(t, "measuring    0/60 s round 1,  0%: save\nmemory of a saga\n", out.String())
}
