//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab/labtest"
)

const images = `title: Images
tables:
  - name: images
    title: Images
    measure: operation
    repeats: 2
    set: {clients: 4, payload: 32, warmup: 50ms, duration: 100ms}
    axes:
      - name: server
        values:
          - {name: one, set: {image: 'redis:1', cpus: 0.5}}
          - {name: absent, set: {image: 'absent:1'}}
          - {name: empty, set: {image: 'empty:1'}}
`

func TestMatrix_RunsServersOfContainerImages(t *testing.T) {
	t.Parallel()
	engine := labtest.Engine(t)
	p := newProgram(t, "PATH="+engine+string(os.PathListSeparator)+os.Getenv("PATH"))
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "images.yml"), []byte(images), 0o600))
	got := p.run("matrix", "images.yml", "--out", "out", "--json")
	require.Equal(t, exitError, got.code, got.stderr)
	before, _, _ := strings.Cut(got.stderr, "run 1 of 6")
	require.Equal(t, 1, strings.Count(before, "pulling redis:1"), "before all runs: %s", got.stderr)
	require.Equal(t, 1, strings.Count(got.stderr, "pulling redis:1"))

	variants := matrixOf(t, got.stdout).Matrix.Tables[0].Variants
	require.Empty(t, variants[0].Failed)
	require.Len(t, variants[0].Runs, 2)
	require.NotEmpty(t, variants[0].Store.Version)
	require.Positive(t, variants[0].Figures["server_cpu_us"].Median, "of the server, not of the engine")
	require.Regexp(t, `^docker --cpus: 0.5 of \d+ CPUs$`, variants[0].CPULimit)
	require.Contains(t, variants[1].Failed, "manifest for absent:1 not found")
	require.Contains(t, variants[2].Failed, "find redis-server or valkey-server in image empty:1")
	left, err := filepath.Glob(filepath.Join(engine, "container-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
