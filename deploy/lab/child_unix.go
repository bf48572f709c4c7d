//go:build unix && !linux

package lab

import "syscall"

func childAttributes(account string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if account == "" {
		return attributes, nil
	}
	var err error
	attributes.Credential, err = credential(account)
	return attributes, err
}

// guard has a watchdog end the child when we die: only Linux does it for us.
func guard(pid int) (release func(), err error) { return startWatchdog(pid) }

// children knows of none: those outside the group end by themselves.
func children(int) []int { return nil }
