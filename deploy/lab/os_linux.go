package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill a child when the thread that forked it ends: see
// Process.run.
func dieWithParent(child *syscall.SysProcAttr) { child.Pdeathsig = syscall.SIGKILL }

// guard does nothing: see dieWithParent.
func guard(int) (release func(), err error) { return func() {}, nil }

// removeSharedMemory removes the System V segment of a PostgreSQL that was killed in
// dir. The kernel keeps it and has a limit of segments. A PostgreSQL that ends by itself
// removes both the segment and the file that names it.
func removeSharedMemory(dir string) {
	var key uint64
	var id int
	if _, err := fmt.Sscan(line(filepath.Join(dir, "postmaster.pid"), 7), &key, &id); err != nil {
		return
	}
	var segment unix.SysvShmDesc
	_, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment)
	owner, known := ownerOf(dir)
	if err == nil && known && segment.Perm.Uid == owner && uint32(segment.Perm.Key) == uint32(key) && segment.Nattch == 0 {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // root, or its owner
	}
}

// identity returns a name that no other file has or gets, as disk.c writes it, and the
// file's owner.
func identity(file *os.File) (name string, owner uint32, err error) {
	var s unix.Statx_t
	if err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &s); err != nil {
		return "", 0, &os.PathError{Op: "statx", Path: file.Name(), Err: err}
	}
	return fmt.Sprintf("%x-%x-%x", s.Ino, s.Btime.Sec, s.Btime.Nsec), s.Uid, nil
}

func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX) }
