package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// slowSyncSource is the source of a library that the server preloads.
//
//go:embed slowsync/slowsync.c
var slowSyncSource string

// Files of a server. We write the first two, beside the server's directory: in it, the
// server's account could plant a link.
const (
	slowSyncLibrary = ".slowsync.so"
	slowSyncDelay   = ".slowsync.delay"
	slowSyncHeld    = "lab-slowsync.held" // in the directory: the server writes it
)

// SlowSync delays each fsync and fdatasync of the server by d, those under way included.
// With 0 it ends the delay. The delay remains after Restart. The server must have been
// started with Config.SlowSync.
func (s *Server) SlowSync(d time.Duration) error {
	if !s.slowSync {
		return errors.New("delay the syncs of a server: it was started without SlowSync")
	}
	return writeDelay(s.dir, d)
}

// DelayedSyncs returns how many syncs SlowSync has delayed since the server's first
// start, those under way included.
func (s *Server) DelayedSyncs() (int64, error) {
	info, err := os.Stat(filepath.Join(s.dir, slowSyncHeld))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count the syncs of a server: %w", err)
	}
	return info.Size(), nil
}

// writeDelay replaces the file at once, so that the library never reads half of it.
func writeDelay(dir string, d time.Duration) error {
	path := dir + slowSyncDelay
	if err := os.WriteFile(path+".new", fmt.Appendln(nil, d.Microseconds()), 0o644); err != nil {
		return fmt.Errorf("delay the syncs of a server: %w", err)
	}
	if err := os.Chmod(path+".new", 0o644); err != nil { // whatever the umask
		return err
	}
	return os.Rename(path+".new", path)
}

// buildSlowSync compiles the library for a server in dir, without a delay yet.
func buildSlowSync(ctx context.Context, dir string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("delay the syncs of a server: %w on %s", errors.ErrUnsupported, runtime.GOOS)
	}
	compiler, err := findServer("cc|gcc", "gcc", "gcc")
	if err != nil {
		return err
	}
	library := dir + slowSyncLibrary
	build := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O1", "-o", library, "-x", "c", "-")
	build.Stdin = strings.NewReader(slowSyncSource)
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w: %s", slowSyncLibrary, err, lastLines(string(output), 5))
	}
	if err := os.Chmod(library, 0o755); err != nil {
		return err
	}
	return writeDelay(dir, 0)
}

// slowSyncEnv returns the environment of a server that preloads the library.
func slowSyncEnv(dir, account string) []string {
	return append(environment(account),
		"LD_PRELOAD="+dir+slowSyncLibrary,
		"LAB_SYNC_DELAY="+dir+slowSyncDelay,
		"LAB_SYNC_HELD="+filepath.Join(dir, slowSyncHeld))
}
