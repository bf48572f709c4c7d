package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotInstalled: there is no such server on this machine. The text says what
// to install.
var ErrNotInstalled = errors.New("not installed")

// places is where servers are that are not on PATH: Debian has PostgreSQL in a
// directory for each version, and MariaDB where only root looks.
func places() []string {
	return []string{
		"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	}
}

// lookServer finds the first of binaries, names separated by "|" or one path.
// The packages to install are Debian's and Homebrew's.
func lookServer(binaries, debian, homebrew string) (string, error) {
	for binary := range strings.SplitSeq(binaries, "|") {
		path, err := lookBinary(binary)
		switch {
		case err == nil:
			return filepath.Abs(path) // it is run from another directory
		case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("find the server: %w", err)
		}
	}
	return "", fmt.Errorf("%s is %w: run `make deps`, or install it (Debian, Ubuntu: "+
		"apt-get install %s; macOS: brew install %s)",
		strings.ReplaceAll(binaries, "|", " or "), ErrNotInstalled, debian, homebrew)
}

// lookBinary looks on PATH, then in places; of several versions it takes the
// last by name.
func lookBinary(name string) (string, error) {
	path, err := exec.LookPath(name)
	if !errors.Is(err, exec.ErrNotFound) {
		return path, err
	}
	for _, place := range places() {
		dirs, _ := filepath.Glob(place) // fails only on a bad pattern
		for _, dir := range slices.Backward(dirs) {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", err
}
