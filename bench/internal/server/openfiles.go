package server

import (
	"fmt"
	"log/slog"
	"math"
	"syscall"

	"sagabench/store"
)

const (
	// otherFiles are open files other than connections and the store's.
	otherFiles = 64
	// embeddedFiles is the most tables that Pebble keeps open.
	embeddedFiles = 1000
)

// openFiles returns how many files this process may open; 0: no limit. At its start Go
// has raised the limit to the hard limit.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}

// fitOpenFiles lowers the limits of connections to the limit of open files: a process out
// of descriptors cannot even answer probes. branches is the limit of connections to all
// branch hosts together; 0: none.
func (c Config) fitOpenFiles(files int, st any, log *slog.Logger) (lowered Config, branches int, err error) {
	if files == 0 {
		return c, 0, nil
	}
	storeFiles, maxStoreFiles := min(embeddedFiles, files/4), embeddedFiles
	least := (otherFiles+reserveConns+2)*4/3 + 1 // a quarter is the store's
	if pool, ok := st.(store.ConnectionPool); ok {
		storeFiles, _ = pool.Connections()
		maxStoreFiles, least = storeFiles, otherFiles+reserveConns+2+storeFiles
	}
	left := files - otherFiles - storeFiles - reserveConns
	if left < 2 {
		return c, 0, fmt.Errorf("server: %w: %d files may be open, at least %d: raise ulimit -n", store.ErrInvalid, files, least)
	}
	// One branch host gets at most three quarters of the connections to branches, so that
	// one that hangs leaves some to the others.
	allBranches := c.BranchConns + (c.BranchConns+2)/3
	wanted := c.MaxConns + allBranches
	if wanted > left {
		c.MaxConns = min(c.MaxConns, max(left/2, left-allBranches))
		c.BranchConns = min(c.BranchConns, max(1, (left-c.MaxConns)*3/4))
		log.Warn("fewer connections than configured: raise the limit of open files (ulimit -n, LimitNOFILE)",
			"limit", files, "needed", otherFiles+maxStoreFiles+reserveConns+wanted, "max_conns", c.MaxConns, "branch_conns", c.BranchConns)
	}
	return c, left - c.MaxConns, nil
}
