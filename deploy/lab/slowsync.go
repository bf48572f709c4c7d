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

// slowSyncSource is the library that is loaded into a server before its own.
//
//go:embed slowsync/slowsync.c
var slowSyncSource string

// Files of a server. The first two are beside its directory, for we write them, and
// inside of it the server's account decides what a name leads to.
const (
	slowSyncLibrary = ".slowsync.so"
	slowSyncDelay   = ".slowsync.delay"
	slowSyncHeld    = "lab-slowsync.held" // in the directory: the server writes it
)

// SlowSync makes each fsync and fdatasync of the server take d longer, from now on
// and also those that have begun; with 0, no longer than they do. The server must
// have been started with SlowSync in its configuration. The delay outlasts Restart.
func (s *Server) SlowSync(d time.Duration) error {
	if !s.engine.slowSync {
		return errors.New("slow the syncs of a server: it was started without SlowSync")
	}
	return writeDelay(s.dir, d)
}

// HeldSyncs counts the syncs that SlowSync has made wait, or does, since the server
// was first started.
func (s *Server) HeldSyncs() (int64, error) {
	info, err := os.Stat(filepath.Join(s.dir, slowSyncHeld))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count the syncs of a server: %w", err)
	}
	return info.Size(), nil
}

// writeDelay renames, so that nobody reads half of it.
func writeDelay(dir string, d time.Duration) error {
	path := dir + slowSyncDelay
	if err := os.WriteFile(path+".new", fmt.Appendln(nil, d.Microseconds()), 0o644); err != nil {
		return fmt.Errorf("slow the syncs of a server: %w", err)
	}
	if err := os.Chmod(path+".new", 0o644); err != nil { // whatever the umask
		return err
	}
	return os.Rename(path+".new", path)
}

// buildSlowSync compiles the library into dir, where the server's account can read
// it, with no delay yet.
func buildSlowSync(ctx context.Context, dir string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("slow the syncs of a server: %w on %s", errors.ErrUnsupported, runtime.GOOS)
	}
	compiler, err := lookServer("cc|gcc", "gcc", "gcc")
	if err != nil {
		return err
	}
	library := dir + slowSyncLibrary
	build := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O1", "-o", library, "-x", "c", "-")
	build.Stdin = strings.NewReader(slowSyncSource)
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w: %s", slowSyncLibrary, err, lastLines(string(said), 5))
	}
	if err := os.Chmod(library, 0o755); err != nil {
		return err
	}
	return writeDelay(dir, 0)
}

// slowSyncEnv is the environment of a server that runs with the library as account.
func slowSyncEnv(dir, account string) []string {
	return append(environment(account),
		"LD_PRELOAD="+dir+slowSyncLibrary,
		"LAB_SYNC_DELAY="+dir+slowSyncDelay,
		"LAB_SYNC_HELD="+filepath.Join(dir, slowSyncHeld))
}
