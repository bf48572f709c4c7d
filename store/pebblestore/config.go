package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config says where a store is and what it promises. Start from
// [DefaultConfig].
type Config struct {
	// Dir is the store's own directory. Open creates it and its parents if they
	// are missing, and refuses a directory that contains other files.
	Dir string

	// MustExist makes Open fail with store.ErrAbsent if Dir contains no store.
	MustExist bool

	// Retention is how long a finished saga is kept, to the millisecond; 0
	// drops it as it ends.
	Retention time.Duration

	// Sync makes Apply and ClaimDue wait for an fsync. Without it the store
	// syncs every second, and a crash of the process or the machine loses what
	// was written since.
	Sync bool

	// Now is the store's clock; nil is time.Now.
	Now func() time.Time

	// SyncLog is a file that says how much of each file of the store is on disk, for
	// LosePower. It must not be in Dir. Empty: none is written.
	SyncLog string

	// Log receives errors of background work and, at debug level, Pebble's own
	// messages; nil discards them.
	Log *slog.Logger

	// For tests: the file system (nil: the machine's), a function that changes
	// Pebble's options, and how many gids of finished sagas Open reads.
	fs            vfs.FS
	tune          func(*pebble.Options)
	maxLoadedGIDs int
}

// defaultLoadedGIDs bounds what Open reads of the finished sagas, to about a
// second. Gids that it did not read are searched on disk until they expire.
const defaultLoadedGIDs = 4 << 20

// DefaultConfig syncs every write and keeps finished sagas for an hour. The
// caller sets Dir.
func DefaultConfig() Config { return Config{Retention: time.Hour, Sync: true} }

func (c Config) check() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("pebble store: no directory given")
	}
	if c.Retention < 0 {
		return c, fmt.Errorf("pebble store: retention %v, must be 0 or more", c.Retention)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.maxLoadedGIDs == 0 {
		c.maxLoadedGIDs = defaultLoadedGIDs
	}
	if c.fs == nil {
		c.fs = vfs.Default
	}
	if c.SyncLog != "" {
		c.fs = &syncLog{c.fs, c.SyncLog}
	}
	return c, nil
}
