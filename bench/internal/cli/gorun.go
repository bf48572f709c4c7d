package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// endWithGoRun ends ctx when the go command that runs this program has gone. A
// SIGTERM to go run ends go alone, and would leave a server running that nobody
// knows of.
func endWithGoRun(ctx context.Context) (context.Context, context.CancelFunc) {
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

// builtByGoRun tells the place where go run puts a program, DIR/go-build…/b001/exe/NAME.
func builtByGoRun(exe string) bool {
	dir := filepath.Dir(exe)
	return filepath.Base(dir) == "exe" && strings.Contains(filepath.ToSlash(dir), "/go-build")
}
