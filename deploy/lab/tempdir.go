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

// dirPrefix starts the names of our temporary directories on this host:
// sagabench-lab-HOST-PID-RANDOM, HOST being a hash. A container that shares the
// directory for temporary files counts processes differently, but has another
// host name.
func dirPrefix() string {
	host, _ := os.Hostname() // none is as good as any
	return fmt.Sprintf("sagabench-lab-%08x-", crc32.ChecksumIEEE([]byte(host)))
}

// dataDir is the directory of the server in a temporary one. Only the server's
// account may enter it. What is around it is ours, and holds the secret file.
const dataDir = "data"

// tempParent is where temporary directories are made: where the system has them,
// unless that is in memory. Systems have another place, for files that survive a
// restart. Without a disk it is memory all the same.
func tempParent() string {
	const lasting = "/var/tmp"
	usual := os.TempDir()
	info, err := os.Stat(lasting)
	if err == nil && info.IsDir() && inMemory(usual) && !inMemory(lasting) {
		return lasting
	}
	return usual
}

func inMemory(dir string) bool { return filesystem.InMemory(filesystem.Of(dir)) }

// tempDir makes a directory that carries our process id, with dataDir in it, and
// removes those of labs that died before they could. Account has to pass through
// it; "" is our own.
func tempDir(account string) (string, error) {
	parent := tempParent()
	sweep(parent)
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-*", dirPrefix(), os.Getpid()))
	if err == nil && account != "" {
		err = os.Chmod(dir, 0o711)
	}
	data := filepath.Join(dir, dataDir)
	if err == nil {
		err = os.Mkdir(data, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("make a directory for the server: %w", err)
	}
	return data, nil
}

// sweep removes from parent the directories of labs whose process is gone. Only
// what is ours: in a directory that all users share, the others are not to be
// trusted with what they put there.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix()+"*-*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix()), "-")
		if pid, err := strconv.Atoi(owner); err == nil && pid > 0 && processGone(pid) && isOwnDir(dir) {
			_ = removeDir(dir)
		}
	}
}

// removeDir removes a temporary directory with what its server, if it was
// killed, left outside of it.
func removeDir(dir string) error {
	forgetSharedMemory(filepath.Join(dir, dataDir))
	return os.RemoveAll(dir)
}
