//go:build unix

package server

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open; 0: there is no limit. Go
// has raised it at the start to what the hard limit allows.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
