package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Files of a server. We write the first, beside the server's directory: in it, the
// server's account could plant a link.
const (
	slowSyncDelay = ".slowsync.delay"
	slowSyncHeld  = "lab-slowsync.held" // in the directory: the server writes it
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
