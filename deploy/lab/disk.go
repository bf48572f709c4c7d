package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// diskSource is the source of a library that the server preloads for SlowSync and
// LosePower.
//
//go:embed disk/disk.c
var diskSource string

// diskLibrary is beside the server's directory: in it, the server's account could plant
// a link.
const diskLibrary = ".disk.so"

// prepareDisk compiles the library and makes the files that it needs.
func (s *Server) prepareDisk(ctx context.Context) error {
	if !s.slowSync && !s.powerLoss {
		return nil
	}
	if s.container != nil {
		return fmt.Errorf("slow syncs and power loss of a server of a container image: %w", errors.ErrUnsupported)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("slow syncs and power loss of a server: %w on %s", errors.ErrUnsupported, runtime.GOOS)
	}
	compiler, err := findServer("cc|gcc", "gcc", "gcc")
	if err != nil {
		return err
	}
	library := s.dir + diskLibrary
	build := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O1", "-o", library, "-x", "c", "-")
	build.Stdin = strings.NewReader(diskSource)
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w: %s", diskLibrary, err, lastLines(string(output), 5))
	}
	if err := os.Chmod(library, 0o755); err != nil {
		return err
	}
	if s.powerLoss {
		if err := s.forgetUnsynced(); err != nil {
			return err
		}
	}
	if s.slowSync {
		return writeDelay(s.dir, 0)
	}
	return nil
}

// diskEnv returns the environment of a server, which preloads the library if it needs it;
// nil: ours.
func (s *Server) diskEnv() []string {
	if !s.slowSync && !s.powerLoss {
		return nil
	}
	env := append(environment(s.account), "LD_PRELOAD="+s.dir+diskLibrary)
	if s.slowSync {
		env = append(env, "LAB_SYNC_DELAY="+s.dir+slowSyncDelay, "LAB_SYNC_HELD="+filepath.Join(s.dir, slowSyncHeld))
	}
	if s.powerLoss {
		env = append(env, "LAB_UNSYNCED="+s.dir+unsyncedDir)
	}
	return env
}
