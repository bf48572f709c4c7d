package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

// The result knows the batches that wait for one of too few connections. That these are the
// limit if they are nearly always in use, packages limit and validity decide.
func TestRun_CountsBatchesThatWaitForAConnection(t *testing.T) {
	t.Parallel()
	// A commit that waits keeps its connection, and no processor.
	p := newProgram(t, "SAGABENCH_SQL_CONNS=2", "SAGABENCH_GROUP_COMMIT_FLUSHERS=4")
	got := p.run("run", "postgres", "--start", "--set", "commit_delay=100000", "--set", "commit_siblings=0",
		"--json", "--duration", "1s", "--warmup", "100ms", "--in-flight", "64")
	require.Equal(t, exitOK, got.code, got.stderr+got.stdout)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.InDelta(t, 2, *s.Resources.StoreConns, 0)
	require.Positive(t, *s.Resources.StoreConnWaits)
	require.Positive(t, *s.Resources.StoreCallsInFlight)
	require.Less(t, *s.Resources.StoreServerConns, 0.2)
}

// A server that lets no more connections in is what fails requests, and the result says
// so.
func TestRun_NamesConnectionsThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "SAGABENCH_GROUP_COMMIT_FLUSHERS=8")
	got := p.run("run", "redis", "--start", "--set", "maxclients=3", "--json", "--duration", "1s", "--warmup", "200ms")
	require.Equal(t, exitInvalid, got.code, got.stderr+got.stdout)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Positive(t, s.Load.ErrorsByKind["http 503"])
	require.InDelta(t, 1, *s.Resources.StoreServerConns, 0)
	require.Contains(t, strings.Join(s.Validity.Because, "\n"), "100% of the connections that the store's server allows are open, and it refuses more")
	require.Zero(t, *s.Check.Lost, "what was refused was never acknowledged")
}

// An app that turns clients away says so in the result: its metrics can be read
// meanwhile.
func TestRun_NamesConnectionsThatTheAppAccepts(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "SAGABENCH_SERVER_MAX_CONNS=4", "SAGABENCH_SERVER_MAX_CONNS_PER_PEER=4")
	got := p.run("run", "pebble", "--json", "--duration", "1s", "--warmup", "200ms", "--in-flight", "32")
	require.Equal(t, exitInvalid, got.code, got.stderr+got.stdout)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Positive(t, s.Load.ErrorsByKind["http 503"])
	require.NotNil(t, s.Resources.AppAcceptWait, s.Validity.Warnings)
	require.Positive(t, *s.Resources.AppAcceptWait)
	require.NotContains(t, strings.Join(s.Validity.Warnings, "\n"), "not measured: the app's metrics")
}
