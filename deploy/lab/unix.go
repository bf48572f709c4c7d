//go:build unix

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// killGroup kills a group leader and its children, such as the one that writes
// a Redis snapshot: left alone it would go on writing into a directory that the
// restarted server uses.
func killGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// processGone reports whether no process has this id.
func processGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// startWatchdog starts a watchdog over process pid; release ends it.
func startWatchdog(pid int) (release func(), err error) {
	dog := watchdog(pid)
	leash, err := dog.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard process %d: %w", pid, err)
	}
	if err := dog.Start(); err != nil {
		return nil, fmt.Errorf("guard process %d: %w", pid, err)
	}
	return func() {
		_ = dog.Process.Kill() // before the leash opens, or it would bite
		_ = dog.Wait()
		_ = leash.Close()
	}, nil
}

// watchdog is a shell that kills process pid once we are gone. It learns of
// that by reading from a pipe whose other end only we hold: however we die, the
// kernel closes it.
func watchdog(pid int) *exec.Cmd {
	dog := exec.Command("/bin/sh", "-c", `read -r line; kill -9 "$0"`, strconv.Itoa(pid))
	dog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return dog
}
