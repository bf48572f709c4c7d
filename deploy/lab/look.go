package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// lookServer finds the first of binaries, names separated by "|" or one path. Of
// several names the one counts whose directory is first on PATH, so that PATH
// says which of two servers it is. The packages to install are Debian's and
// Homebrew's.
func lookServer(binaries, debian, homebrew string) (string, error) {
	path, err := lookBinary(strings.Split(binaries, "|"))
	switch {
	case err == nil:
		return filepath.Abs(path) // it is run from another directory
	case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("find the server: %w", err)
	}
	return "", fmt.Errorf("%s is %w: run `make deps`, or install it (Debian, Ubuntu: "+
		"apt-get install %s; macOS: brew install %s)",
		strings.ReplaceAll(binaries, "|", " or "), ErrNotInstalled, debian, homebrew)
}

// lookBinary looks on PATH, then in places; of several versions there it takes
// the last by name.
func lookBinary(names []string) (string, error) {
	if filepath.Base(names[0]) != names[0] {
		return exec.LookPath(names[0])
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, place := range places() {
		versions, _ := filepath.Glob(place) // fails only on a bad pattern
		slices.Reverse(versions)
		dirs = append(dirs, versions...)
	}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) { // nothing is run from where we happen to be
			continue
		}
		for _, name := range names {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", exec.ErrNotFound
}

// listed are the binaries that an environment variable names, separated as in
// PATH.
func listed(variable string) []string {
	return slices.DeleteFunc(filepath.SplitList(os.Getenv(variable)), func(path string) bool { return path == "" })
}
