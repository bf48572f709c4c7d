package lua

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file")

// Every file says at its top what it takes, gives back and why it is atomic.
func TestScripts_OpenWithTheirContract(t *testing.T) {
	names, err := fs.Glob(files, "*.lua")
	require.NoError(t, err)
	require.Len(t, names, len(All())+1, "a file that is no operation, beside change.lua")
	for _, name := range names {
		header, _, found := strings.Cut(file(strings.TrimSuffix(name, ".lua")), "\n\n")
		require.True(t, found, name)
		for _, part := range []string{"-- " + strings.TrimSuffix(name, ".lua") + ": ", "-- KEYS ", "-- ARGV ", "-- Returns ", "-- Atomic "} {
			require.Contains(t, header, part, name)
		}
		for line := range strings.Lines(header) {
			require.True(t, strings.HasPrefix(line, "--"), "%s: %q", name, line)
		}
	}
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
