//go:build !linux

package probe

import (
	"errors"
	"runtime"
)

// cpuOf cannot tell what children used that have ended.
func cpuOf(int) (processCPU, error) {
	return processCPU{}, errors.New("what a server's processes used is not read on " + runtime.GOOS)
}

func childrenOf(int) []int { return nil }
