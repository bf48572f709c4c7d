//go:build !linux

package lab

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent does nothing: only Linux has it. See guard.
func dieWithParent(*syscall.SysProcAttr) {}

// guard has a watchdog kill process pid when we have ended.
func guard(pid int) (release func(), err error) {
	return startWatchdog("kill", "-9", strconv.Itoa(pid))
}

// removeSharedMemory does nothing: a PostgreSQL that was killed leaves a few bytes
// until the machine restarts.
func removeSharedMemory(string) {}

func identity(*os.File) (name string, owner uint32, err error) { return "", 0, errors.ErrUnsupported }

func lockFile(*os.File) error { return errors.ErrUnsupported }
