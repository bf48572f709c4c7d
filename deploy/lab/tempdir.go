package lab

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sagabench/internal/filesystem"
)

// dirPrefix begins the names of the temporary directories of this host:
// sagabench-lab-HOST-PID-RANDOM, where HOST is a hash. A container may share the parent
// directory, but not the process ids; it has another host name.
func dirPrefix() string {
	host, _ := os.Hostname() // may be empty
	return fmt.Sprintf("sagabench-lab-%08x-", crc32.ChecksumIEEE([]byte(host)))
}

// dataDir is the server's directory in a temporary one. Only the server's account may
// enter it. The temporary directory is ours, and holds the secret file.
const dataDir = "data"

// tempParent returns os.TempDir, or /var/tmp if only that one is on a disk.
func tempParent() string {
	const onDisk = "/var/tmp"
	usual := os.TempDir()
	info, err := os.Stat(onDisk)
	if err == nil && info.IsDir() && inMemory(usual) && !inMemory(onDisk) {
		return onDisk
	}
	return usual
}

func inMemory(dir string) bool { return filesystem.InMemory(filesystem.Of(dir)) }

// tempDir makes a temporary directory with dataDir in it, whose path it returns. Before,
// it removes those that dead processes have left.
func tempDir(account string) (string, error) {
	parent := tempParent()
	removeStale(parent)
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-*", dirPrefix(), os.Getpid()))
	if err != nil {
		return "", err
	}
	if account != "" { // it has to pass through
		if err := os.Chmod(dir, 0o711); err != nil {
			return "", err
		}
	}
	data := filepath.Join(dir, dataDir)
	return data, os.Mkdir(data, 0o700)
}

// removeStale removes the temporary directories in parent whose process has ended. It
// removes only directories that we own: other users may write to parent, too.
func removeStale(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix()+"*-*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix()), "-")
		if pid, err := strconv.Atoi(owner); err == nil && pid > 0 && processEnded(pid) && isOwnDir(dir) {
			_ = removeTempDir(dir)
		}
	}
}

// removeTempDir removes a temporary directory, and the shared memory of a server that
// was killed.
func removeTempDir(dir string) error {
	removeSharedMemory(filepath.Join(dir, dataDir))
	return os.RemoveAll(dir)
}
