package labtest

import (
	_ "embed"
	"os"
	"path/filepath"
	"testing"
)

// docker plays the program docker.
//
//go:embed docker.sh
var docker string

// Engine returns a directory, to be put on PATH, with a program docker that runs the
// servers of this machine in place of those of images. It knows no image absent:1, and
// empty:1 has no server. The directory has a file container-NAME for each container that
// runs, and the commands in the file commands.
func Engine(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
