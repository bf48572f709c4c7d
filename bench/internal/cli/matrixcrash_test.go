package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const crashes = `title: Crashes
tables:
  - name: loss
    title: Lost
    measure: crash
    repeats: 1
    set: {in_flight: 4, duration: 400ms}
    axes:
      - name: store
        values:
          - {name: redis, set: {store: redis}}
          - {name: pebble, set: {store: pebble, durability: D3, duration: 1500ms}} # its disk may be busy
      - name: crash
        values: [process, machine]
`

// A crash loses what the class says; that is a figure, and the result is valid.
func TestMatrix_Crashes(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "crashes.yml"), []byte(crashes), 0o600))
	got := p.run("matrix", "crashes.yml", "--out", "out", "--json")
	require.Equal(t, exitOK, got.code, got.stderr)
	s := matrixOf(t, got.stdout)
	require.True(t, s.Validity.Valid, s.Validity.Because)
	require.Nil(t, s.Check.Lost)
	for i, v := range s.Matrix.Tables[0].Variants {
		acknowledged, lost := v.Figures["acknowledged"].Median, v.Figures["lost"].Median
		require.Positive(t, acknowledged, v.Names)
		require.Equal(t, map[string]float64{"redis": acknowledged, "pebble": 0}[v.Names[0]], lost, v.Names)
		require.Equal(t, lost > 0, v.Figures["window_ms"].Median > 0)
		require.Equal(t, map[string]string{"redis": "D0", "pebble": "D3"}[v.Names[0]], v.Store.Durability)
		require.Equal(t, []string{"process", "machine"}[i%2], v.Names[1])
	}
	requirePages(t, filepath.Join(p.dir, "out"), "pebble, machine")
	left, err := os.ReadDir(filepath.Join(p.dir, "out", s.Matrix.Tables[0].Variants[2].Runs[0]))
	require.NoError(t, err)
	require.Len(t, left, 1, "the run's figures alone")
}
