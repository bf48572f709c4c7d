package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrNotInstalled reports that a server is not on this machine. The text says what to
// install.
var ErrNotInstalled = errors.New("not installed")

// serverDirs returns where servers are that are not on PATH: Debian has a directory for
// each version of PostgreSQL, and MariaDB in one that is on root's PATH only.
func serverDirs() []string {
	return []string{
		"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	}
}

// Binaries returns the servers that tests should run against, as values of
// Config.Binary: the installed one, then the paths in the environment variable
// LAB_REDIS_SERVERS, LAB_MYSQL_SERVERS or LAB_POSTGRES_SERVERS, separated like PATH.
func (k *Kind) Binaries() []string {
	more := filepath.SplitList(os.Getenv(k.binariesVariable))
	return append([]string{k.binaries}, slices.DeleteFunc(more, func(path string) bool { return path == "" })...)
}

// versionName is a name of a binary that asks for a version.
var versionName = regexp.MustCompile(`^[a-z]+-([0-9]+(?:\.[0-9]+)*)$`)

// reportedVersion is where --version of Redis, MariaDB and MySQL has the version.
var reportedVersion = regexp.MustCompile(`(?i)\b(?:v=|ver )([0-9]+(?:\.[0-9]+)*)`)

// find returns the path of Config.Binary.
func (k *Kind) find(ctx context.Context, binary string) (string, error) {
	path, err := findServer(cmp.Or(binary, k.binaries), k.debian, k.homebrew)
	version := versionName.FindStringSubmatch(binary)
	if err == nil || version == nil {
		return path, err
	}
	for _, candidate := range k.Binaries() {
		path, err := findServer(candidate, k.debian, k.homebrew)
		if err != nil {
			continue
		}
		text := askVersion(ctx, path)
		if found := reportedVersion.FindSubmatch(text); found != nil && strings.HasPrefix(string(found[1])+".", version[1]+".") {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w: it is neither on PATH nor a version in %s", binary, ErrNotInstalled, k.binariesVariable)
}

// askVersion returns what a binary prints as its version. What does not answer has none.
func askVersion(ctx context.Context, path string) []byte {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = outputDelay
	text, _ := cmd.Output()
	return text
}

// findServer finds the first of binaries: one path, or names separated by "|". Of
// several names, it takes the one whose directory is first on PATH, so that PATH
// chooses between MariaDB and MySQL. The packages are Debian's and Homebrew's.
func findServer(binaries, debian, homebrew string) (string, error) {
	path, err := findBinary(strings.Split(binaries, "|"))
	switch {
	case err == nil:
		return filepath.Abs(path) // it runs in another directory
	case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("find the server: %w", err)
	}
	return "", fmt.Errorf("%s is %w: run `make deps`, or install it (Debian, Ubuntu: "+
		"apt-get install %s; macOS: brew install %s)",
		strings.ReplaceAll(binaries, "|", " or "), ErrNotInstalled, debian, homebrew)
}

// findBinary searches PATH, then serverDirs, where it takes the last version by name.
func findBinary(names []string) (string, error) {
	if filepath.Base(names[0]) != names[0] {
		return exec.LookPath(names[0])
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range serverDirs() {
		versions, _ := filepath.Glob(pattern) // fails only on a bad pattern
		slices.Reverse(versions)
		dirs = append(dirs, versions...)
	}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) { // never run a binary of the working directory
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

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
