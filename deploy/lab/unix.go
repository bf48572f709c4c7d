//go:build unix

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// killGroup kills a group leader and its children, such as the one that writes
// a Redis snapshot: left alone it would go on writing into a directory that the
// restarted server uses. PostgreSQL's sessions are in groups of their own; a
// stopped parent neither adds to them nor lets go of their ids.
func killGroup(leader *os.Process) {
	_ = leader.Signal(syscall.SIGSTOP)
	for _, pid := range children(leader.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL)
}

// credential is an account with its main group and no other.
func credential(account string) (*syscall.Credential, error) {
	found, err := user.Lookup(account)
	if err != nil {
		return nil, fmt.Errorf("run as %s: %w", account, err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as %s: user: %w", account, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as %s: group: %w", account, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// giveTo makes account the owner of a file or directory.
func giveTo(account, path string) error {
	owner, err := credential(account)
	if err != nil {
		return err
	}
	return os.Lchown(path, int(owner.Uid), int(owner.Gid))
}

// isOwnDir reports whether path is a directory, not a link to one, of our user.
func isOwnDir(path string) bool {
	uid, ok := ownerOf(path)
	return ok && int(uid) == os.Geteuid()
}

// ownerOf is the user who owns a directory; of anything else it is not known.
func ownerOf(dir string) (uid uint32, known bool) {
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
