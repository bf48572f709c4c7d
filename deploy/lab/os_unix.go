//go:build unix

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes makes a child the leader of a process group and has it end with us. If
// there is an account, the child runs under that one, without our capabilities.
func childAttributes(account string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attributes)
	if account == "" {
		return attributes, nil
	}
	uid, gid, err := lookUpAccount(account)
	attributes.Credential = &syscall.Credential{Uid: uid, Gid: gid} // and no other groups
	return attributes, err
}

func lookUpAccount(account string) (uid, gid uint32, err error) {
	found, err := user.Lookup(account)
	if err != nil {
		return 0, 0, fmt.Errorf("run as %s: %w", account, err)
	}
	if _, err := fmt.Sscan(found.Uid+" "+found.Gid, &uid, &gid); err != nil {
		return 0, 0, fmt.Errorf("run as %s: user %s, group %s: %w", account, found.Uid, found.Gid, err)
	}
	return uid, gid, nil
}

// changeOwner gives a file or directory to the account.
func changeOwner(account, path string) error {
	uid, gid, err := lookUpAccount(account)
	if err != nil {
		return err
	}
	return os.Lchown(path, int(uid), int(gid))
}

// isOwnDir reports whether path is a directory, and no link to one, that we own.
func isOwnDir(path string) bool {
	uid, ok := ownerOf(path)
	return ok && int(uid) == os.Geteuid()
}

// ownerOf returns the owner of a directory. ok is false if it is not a directory.
func ownerOf(dir string) (uid uint32, ok bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, true
}

func processEnded(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// killGroup kills a process, its group and, on Linux, its other children. A child that
// survives, such as the one that writes a Redis snapshot, would write to the directory
// of the restarted server. PostgreSQL's sessions are in groups of their own. The process
// is stopped first, so that it starts no more children.
func killGroup(leader *os.Process) {
	_ = leader.Signal(syscall.SIGSTOP)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", leader.Pid)) // none outside Linux
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // the thread may have ended
		for field := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL)
}

// resume continues a process that SIGSTOP has paused, so that it handles its signals.
func resume(p *os.Process) { _ = p.Signal(syscall.SIGCONT) }

// startWatchdog starts a watchdog that runs the command when we have ended. release ends
// the watchdog.
func startWatchdog(command ...string) (release func(), err error) {
	dog := watchdog(command...)
	pipe, err := dog.StdinPipe()
	if err == nil {
		err = dog.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a watchdog: %w", err)
	}
	return func() {
		_ = dog.Process.Kill() // before the pipe is closed, which would make it run the command
		_ = dog.Wait()
		_ = pipe.Close()
	}, nil
}

// watchdog is a shell that waits for the end of a pipe and then runs the command. Only we
// have the pipe's other end, which the kernel closes however we end.
func watchdog(command ...string) *exec.Cmd {
	dog := exec.Command("/bin/sh", append([]string{"-c", `read -r line; "$@"`, "sh"}, command...)...)
	dog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not reached by Ctrl-C
	return dog
}
