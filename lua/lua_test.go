package lua

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

var update = flag.Bool("update", false, "write the golden file")

// Every file says at its top what it takes, gives back and why it is atomic.
func TestScripts_OpenWithTheirContract(t *testing.T) {
	names, err := fs.Glob(files, "*.lua")
	require.NoError(t, err)
	require.Len(t, names, len(All())+1, "a file that is no operation, beside change.lua")
	for _, name := range names {
		header, _, found := strings.Cut(embedded(t, name), "\n\n")
		require.True(t, found, name)
		for _, part := range []string{"-- " + strings.TrimSuffix(name, ".lua") + ": ", "-- KEYS ", "-- ARGV ", "-- Returns ", "-- Atomic "} {
			require.Contains(t, header, part, name)
		}
		for line := range strings.Lines(header) {
			require.True(t, strings.HasPrefix(line, "--"), "%s: %q", name, line)
		}
	}
}

func embedded(t *testing.T, name string) string {
	text, err := files.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// A script whose text changes is another script to every server: this makes
// such a change visible in a diff.
func TestScripts_SHA1(t *testing.T) {
	var got strings.Builder
	for _, s := range All() {
		fmt.Fprintf(&got, "%s %s\n", s.SHA1, s.Name)
	}
	const golden = "testdata/sha1.golden"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "if the change is meant: go test ./lua -update")
}

// Numbers of KEYS and ARGV that do not fit together are refused by name, before
// anything is written; those that fit are not.
func TestScripts_RefuseWrongNumbers(t *testing.T) {
	t.Parallel()
	const (
		index, one, two = "p:{0}", "p:{0}:one", "p:{0}:two"
		saga            = "someone 00000001s---- {}"
		mark            = "........00000001ss0000y"
		end             = "someone 00000001sS0002y"
	)
	list := func(words ...string) []string { return words }
	var clients []*redis.Client
	for _, binary := range lab.Redis.Binaries() {
		server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary})
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	for _, tt := range []struct {
		script     Script
		keys, argv []string
		says       string // empty: it is right
	}{
		{Save, list(index, one, two), list("2", "1000", saga, saga), ""},
		{Save, list(index, one, index, two), list("1", "1000", saga, "1", "1000", saga), ""},
		{Save, nil, nil, "save: ARGV[1]: want a number of sagas"},
		{Save, list(index, one), list("2", "1000", saga, saga), "save: 2 in KEYS, want 3"},
		{Save, list(index, one, two), list("1", "1000", saga), "save: 3 in KEYS, want 2"},
		{Save, list(index, one, two), list("2", "1000", saga), "save: 3 in ARGV, want 4"},
		{Save, list(index, one), list("1", "1000", saga, saga), "save: ARGV[4]: want a number of sagas"},
		{Save, list(index, one), list("1", "1000", saga, "1"), "save: 4 in ARGV, want 6"},
		{Save, list(index), list("0", "1000"), "save: ARGV[1]: want a number of sagas"},
		{Update, list(one), list("1", mark), ""},
		{Update, list(one, two), list("1", mark), "update: 2 in KEYS, want 1"},
		{Update, list(one), list("1"), "update: 1 in ARGV, want 2"},
		{Update, list(one), list(mark, "1"), "update: ARGV[1]: want a number of sagas"},
		{Complete, list(index, one), list("1000", "1", end), ""},
		{Complete, list(index, one), list("1", end), "complete: ARGV[2]: want a number of sagas"},
		{Complete, list(one), list("1000", "1", end), "complete: 1 in KEYS, want 2"},
		{Complete, list(index, one), list("1000", "1", end, "1"), "complete: 4 in ARGV, want 5"},
		{Reschedule, list(index, one), list("1", "1000", "", mark), ""},
		{Reschedule, list(index, one), list("1", "1000", mark), "reschedule: 3 in ARGV, want 4"},
		{Reschedule, list(index, one, two), list("1", "1000", "", mark), "reschedule: 3 in KEYS, want 2"},
		{Claim, list(index, one), list("someone ", "9000", "1000"), ""},
		{Claim, list(index), list("someone ", "9000", "1000"), "claim: 1 in KEYS and 3 in ARGV, want 2 or more and 3"},
		{Claim, list(index, one), list("someone ", "1000"), "claim: 2 in KEYS and 2 in ARGV, want 2 or more and 3"},
		{Claim, list(index, one), list("someone ", "9000", "1000", "1"), "claim: 2 in KEYS and 4 in ARGV, want 2 or more and 3"},
	} {
		t.Run(fmt.Sprintf("%s %v %q", tt.script.Name, tt.keys, tt.argv), func(t *testing.T) {
			for _, client := range clients {
				require.NoError(t, client.Del(t.Context(), index, one, two).Err())
				argv := make([]any, len(tt.argv))
				for i, arg := range tt.argv {
					argv[i] = arg
				}
				err := client.Eval(t.Context(), tt.script.Source, tt.keys, argv...).Err()
				if tt.says == "" {
					require.NoError(t, err)
					continue
				}
				require.EqualError(t, err, "ERR "+tt.says)
				require.Zero(t, client.Exists(t.Context(), index, one, two).Val())
			}
		})
	}
}
