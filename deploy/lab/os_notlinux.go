//go:build !linux

package lab

import "syscall"

// dieWithParent does nothing: only Linux has it. See guard.
func dieWithParent(*syscall.SysProcAttr) {}

// guard has a watchdog kill process pid when we have ended.
func guard(pid int) (release func(), err error) { return startWatchdog(pid) }

// removeSharedMemory does nothing: a PostgreSQL that was killed leaves a few bytes
// until the machine restarts.
func removeSharedMemory(string) {}
