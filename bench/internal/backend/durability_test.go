package backend

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
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
				settings, err := SetDurability(&target, class)
				require.NoError(t, err)
				if target.Embedded() {
					target.Config.Pebble.Dir = filepath.Join(t.TempDir(), "store")
					if filesystem.InMemory(filesystem.Of(t.TempDir())) {
						t.Skip("the directory for temporary files is in memory")
					}
					requireClass(t, target, class)
					return
				}
				for _, binary := range lab.Kinds[driver].Binaries() {
					server := labtest.Start(t, lab.Kinds[driver], lab.Config{Binary: binary, Settings: settings})
					target.SetURL(server.URL())
					requireClass(t, target, class)
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
	for driver, have := range map[string]string{"pebble": "D2, D3", "redis": "D0, D1, D2, D3", "mysql": "D2, D3", "postgres": "D2, D3"} {
		_, err := SetDurability(&open.Target{Driver: driver}, store.D4)
		require.EqualError(t, err, "D4 is not available for "+driver+": want "+have)
	}
}
