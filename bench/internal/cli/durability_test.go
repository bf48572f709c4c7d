package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/internal/race"
)

// Package backend reads every class of every store back.
func TestDurability_IsThatOfTheResult(t *testing.T) {
	t.Parallel()
	got := newProgram(t).run("run", "redis", "--start", "--durability", "D1", "--set", "maxclients=500", "--duration", "300ms", "--warmup", "100ms", "--json")
	got.requireRan(t)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Equal(t, "D1", s.Run.Store.Durability)
	require.Zero(t, *s.Check.Lost)
}

// The flag of bench compare is that of both variants; each may have its own.
func TestDurability_OfVariants(t *testing.T) {
	t.Parallel()
	got := newProgram(t, "SAGABENCH_PEBBLE_SYNC=false").run("compare", "redis --start", "pebble --durability D2", "--durability", "D3",
		"--pairs", "1", "--duration", "300ms", "--warmup", "100ms", "--json")
	require.Contains(t, []int{exitOK, exitInvalid}, got.code, got.stderr)
	c := comparisonOf(t, got.stdout)
	require.Equal(t, "D3", c.Compare.A.Store.Durability)
	require.Equal(t, "always", c.Compare.A.Store.Settings["appendfsync"])
	require.Equal(t, "D2", c.Compare.B.Store.Durability)
}

func TestDurability_RefusesWhatItCannotSet(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"unknown":          {[]string{"run", "redis", "--start", "--durability", "high"}, `--durability: "high", want D0 to D4`},
		"D4":               {[]string{"run", "--durability", "D4"}, "--durability: D4 is not available for pebble, which has no replica: want D2, D3"},
		"not that store's": {[]string{"run", "postgres", "--start", "--durability", "D0"}, "--durability: D0 is not available for postgres: want D2, D3, D4"},
		"Pebble":           {[]string{"run", "--durability", "D0"}, "--durability: D0 is not available for pebble: want D2, D3"},
		"capacity":         {[]string{"capacity", "mysql", "--start", "--durability", "D1"}, "--durability: D1 is not available for mysql: want D2, D3, D4"},
		"variant":          {[]string{"compare", "redis --start", "mysql --start", "--durability", "D0"}, "variant B: --durability: D0 is not available for mysql"},
		"no start":         {[]string{"run", "redis", "--durability", "D3"}, "--durability: it is for pebble, or for a server that --start starts"},
		"target":           {[]string{"capacity", "--target", "http://127.0.0.1:1", "--durability", "D3"}, "--durability: it is for pebble"},
		"D4, no replica":   {[]string{"run", "mysql", "--start", "--durability", "D4", "--replicas", "0"}, "--replicas: 0, must be at least 1 with --durability D4, which acknowledges a write only once a replica has it"},
		"D4, two masters":  {[]string{"run", "redis", "--start", "--durability", "D4", "--nodes", "2"}, "--nodes: 2, with --durability D4 must be 1, or 3 to 16: a replica takes over only in a cluster of at least 3 masters"},
		"set, too":         {[]string{"run", "mysql", "--start", "--durability", "D3", "--set", "innodb-flush-log-at-trx-commit=2"}, "--set: innodb_flush_log_at_trx_commit: --durability D3 sets it, leave one of the two out"},
		"lowered, Redis":   {[]string{"run", "redis", "--start", "--durability", "D3", "--set", "no-appendfsync-on-rewrite=yes"}, "durability: the store has D1 (all since"},
		"lowered, Postgr":  {[]string{"run", "postgres", "--start", "--durability", "D3", "--set", "fsync=off"}, "durability: the store has D1 (all since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, tt.args, tt.says)
		})
	}
}

// In D4 the server has a replica, whose costs are a part of the store's. Package loss starts
// the other stores so.
func TestDurability_D4_StartsAReplica(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run("run", "redis", "--start", "--durability", "D4", "--duration", "500ms", "--warmup", "100ms", "--out", "there", "--json")
	got.requireRan(t)
	var s result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Equal(t, "D4", s.Run.Store.Durability)
	require.Contains(t, s.Run.Topology, "the store is a primary with a replica")
	require.Zero(t, *s.Check.Lost)
	page, err := os.ReadFile(filepath.Join(p.dir, "there", "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "Cost per saga, replica included")
}
