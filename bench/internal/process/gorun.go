// Package process is about this process itself: when it ends, and how much memory it uses.
package process

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// EndWithGoRun ends ctx when the go command that runs this program has gone. A
// SIGTERM to go run ends go alone, and would leave a server running that nobody
// knows of.
func EndWithGoRun(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	exe, err := os.Executable()
	if err != nil || !builtByGoRun(exe) {
		return ctx, cancel
	}
	parent := os.Getppid()
	go func() {
		for look := time.NewTicker(200 * time.Millisecond); os.Getppid() == parent; {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// goRunDirs are the directories where go run puts a program: go-build…/b001/exe when it
// links it, and from then on its cache, XX/HASH-d.
var goRunDirs = regexp.MustCompile(`/go-build.*/exe$|/[0-9a-f]{2}/[0-9a-f]{64}-d$`)

func builtByGoRun(exe string) bool { return goRunDirs.MatchString(filepath.ToSlash(filepath.Dir(exe))) }
