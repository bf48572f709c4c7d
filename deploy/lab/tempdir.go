package lab

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// dirPrefix starts the names of our temporary directories on this host:
// sagabench-lab-HOST-PID-RANDOM, HOST being a hash. A container that shares the
// directory for temporary files counts processes differently, but has another
// host name.
func dirPrefix() string {
	host, _ := os.Hostname() // none is as good as any
	return fmt.Sprintf("sagabench-lab-%08x-", crc32.ChecksumIEEE([]byte(host)))
}

// tempDir makes a directory that carries our process id, and removes those of
// labs that died before they could.
func tempDir() (string, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-*", dirPrefix(), os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("make a directory for the server: %w", err)
	}
	return dir, nil
}

// sweep removes from parent the directories of labs whose process is gone. What
// it cannot remove, another user's for one, stays.
func sweep(parent string) {
	ours, err := filepath.Glob(filepath.Join(parent, dirPrefix()+"*-*"))
	if err != nil {
		return
	}
	for _, dir := range ours {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix()), "-")
		if pid, err := strconv.Atoi(owner); err == nil && pid > 0 && processGone(pid) {
			_ = removeDir(dir)
		}
	}
}

// removeDir removes a server's directory with what the server, if it was
// killed, left outside of it.
func removeDir(dir string) error {
	forgetSharedMemory(dir)
	return os.RemoveAll(dir)
}
