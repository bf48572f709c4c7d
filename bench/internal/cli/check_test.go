package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
	"sagabench/store/pebblestore"
)

// What was stopped by force was not asked whether it is undone, and whoever reads that
// every saga is whole must know.
func TestCheck_SaysWhatWasStoppedByForce(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cfg := pebblestore.DefaultConfig()
	cfg.Dir = filepath.Join(p.dir, "there")
	s, err := pebblestore.Open(t.Context(), cfg)
	require.NoError(t, err)
	body := []byte(`{"steps":[{"action":"http://a","compensate":"http://b"}]}`)
	for _, change := range []store.Change{
		&store.Create{GID: "forced", Body: body, Steps: 1, Owner: "test", Due: time.Hour},
		&store.Transition{GID: "forced", Epoch: 1, From: store.StatusSubmitted, To: store.StatusFailed, Note: `{"forced":true}`},
	} {
		require.NoError(t, s.Apply(t.Context(), []store.Change{change})[0])
	}
	require.NoError(t, s.Close())
	got := p.run("check", "pebble:there")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "stopped by force, so not asked whether they were undone: 1\n")
}
