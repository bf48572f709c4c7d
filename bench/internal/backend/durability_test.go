package backend

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/internal/filesystem"
	"sagabench/store"
	"sagabench/store/open"
)

// The class is the one that the store itself reports, on every version that is installed.
func TestSetDurability_IsReadBack(t *testing.T) {
	t.Parallel()
	for driver, of := range classes {
		for _, class := range slices.Sorted(maps.Keys(of)) {
			t.Run(driver+" "+class.String(), func(t *testing.T) {
				t.Parallel()
				target, err := open.Parse(driver, open.DefaultConfig())
				require.NoError(t, err)
				if target.Embedded() {
					_, err := SetDurability(&target, class)
					require.NoError(t, err)
					target.Config.Pebble.Dir = filepath.Join(t.TempDir(), "store")
					if filesystem.InMemory(filesystem.Of(t.TempDir())) {
						t.Skip("the directory for temporary files is in memory")
					}
					requireClass(t, target, class)
					return
				}
				if class == store.D4 && driver != open.Redis {
					return // package loss reads it back from the installed servers
				}
				for _, binary := range lab.Kinds[driver].Binaries() {
					start := Start{Start: true, Nodes: 1, Replicas: ReplicasOfClass, Durability: class.String(), Server: lab.Config{Binary: binary}}
					servers, err := start.Check(driver, &target)
					require.NoError(t, err)
					started, err := servers.Start(t.Context())
					require.NoError(t, err)
					target.SetURL(started.URL())
					requireClass(t, target, class)
					require.NoError(t, started.Stop())
				}
			})
		}
	}
}

func requireClass(t *testing.T, target open.Target, class store.Durability) {
	t.Helper()
	s, err := target.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, class, settings.Durability, settings.Values)
}

func TestSetDurability_NamesWhatTheStoreCanHave(t *testing.T) {
	t.Parallel()
	for driver, have := range map[string]string{"pebble": "D2, D3", "mysql": "D2, D3, D4", "postgres": "D2, D3, D4"} {
		_, err := SetDurability(&open.Target{Driver: driver}, store.D0)
		require.EqualError(t, err, "D0 is not available for "+driver+": want "+have)
	}
	_, err := SetDurability(&open.Target{Driver: open.Pebble}, store.D4)
	require.EqualError(t, err, "D4 is not available for pebble, which has no replica: want D2, D3")
}
