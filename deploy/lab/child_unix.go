//go:build unix && !linux

package lab

import "syscall"

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// guard has a watchdog end the child when we die: only Linux does it for us.
func guard(pid int) (release func(), err error) { return startWatchdog(pid) }
