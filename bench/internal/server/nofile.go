package server

import (
	"fmt"
	"log/slog"

	"sagabench/store"
)

const (
	// otherFiles are those that a process has open beside its connections and what
	// its store has.
	otherFiles = 64
	// embeddedFiles is how many tables Pebble keeps open at most.
	embeddedFiles = 1000
)

// withinFiles lowers the limits of connections to what the process may have open: a
// server that is out of descriptors does not even answer whether it is alive. It
// returns how many connections to branches there may be altogether; 0: as many as
// they like.
func (c Config) withinFiles(files int, st any, log *slog.Logger) (lowered Config, branches int, err error) {
	if files == 0 {
		return c, 0, nil
	}
	ofStore, ofStoreAtMost := min(embeddedFiles, files/4), embeddedFiles
	least := (otherFiles+reserveConns+2)*4/3 + 1 // of which a quarter is the store's
	if shared, ok := st.(store.ConnectionPool); ok {
		ofStore, _ = shared.Connections()
		ofStoreAtMost, least = ofStore, otherFiles+reserveConns+2+ofStore
	}
	left := files - otherFiles - ofStore - reserveConns
	if left < 2 {
		return c, 0, fmt.Errorf("server: %w: %d files may be open, at least %d: raise ulimit -n", store.ErrInvalid, files, least)
	}
	// One branch host may have three quarters of the connections to branches: those to a
	// host that hangs, or has much to do, leave some to the others.
	ofBranches := c.BranchConns + (c.BranchConns+2)/3
	wanted := c.MaxConns + ofBranches
	if wanted > left {
		c.MaxConns = min(c.MaxConns, max(left/2, left-ofBranches))
		c.BranchConns = min(c.BranchConns, max(1, (left-c.MaxConns)*3/4))
		log.Warn("fewer connections than configured: raise the limit of open files (ulimit -n, LimitNOFILE)",
			"limit", files, "needed", otherFiles+ofStoreAtMost+reserveConns+wanted, "max_conns", c.MaxConns, "branch_conns", c.BranchConns)
	}
	return c, left - c.MaxConns, nil
}
