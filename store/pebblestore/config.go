package pebblestore

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config says where a store is and what it promises. Start from
// [DefaultConfig].
type Config struct {
	// Dir is the store's own directory. It is made, with its parents, when it
	// does not exist; one that holds anything else is refused.
	Dir string

	// MustExist has Open fail with store.ErrAbsent where there is no store yet.
	MustExist bool

	// Retention is how long a finished saga is kept, to the millisecond; 0
	// drops it as it ends.
	Retention time.Duration

	// Sync makes Apply and ClaimDue wait for an fsync. Without it the store
	// syncs every second, and a crash, of the process too, loses the last.
	Sync bool

	// Now is the store's clock; nil is time.Now.
	Now func() time.Time

	// Log takes what happens in the background: errors as such, pebble's own
	// messages at debug level. Nil drops it; what matters to a caller is in
	// the errors that it gets.
	Log *slog.Logger

	// For tests: the file system, nil being the machine's; a last word on
	// pebble's options; and how many gids of finished sagas Open reads.
	fs            vfs.FS
	tune          func(*pebble.Options)
	maxLoadedGIDs int
}

// defaultLoadedGIDs bounds what Open reads of the finished sagas, to about a
// second. Gids that it did not read are looked for on disk until they expire.
const defaultLoadedGIDs = 4 << 20

// DefaultConfig is a store that syncs every write and keeps finished sagas for
// an hour. Dir is left to be set.
func DefaultConfig() Config { return Config{Retention: time.Hour, Sync: true} }

func (c Config) check() (Config, error) {
	if c.Dir == "" {
		return c, fmt.Errorf("pebble store: no directory given")
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
	return c, nil
}
