package filesystem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// names are the common file systems by their number in statfs(2).
var names = map[uint32]string{
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.EXT4_SUPER_MAGIC:      "ext4", // ext2 and ext3 have the same number
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.FUSE_SUPER_MAGIC:      "fuse",
	unix.NFS_SUPER_MAGIC:       "nfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.V9FS_MAGIC:            "9p",
	unix.XFS_SUPER_MAGIC:       "xfs",
	0x2fc12fc1:                 "zfs", // not part of Linux
}

// Of returns the name of the file system that path is on, or its number in hexadecimal.
// It returns "" on errors.
func Of(path string) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return ""
	}
	number := uint32(stat.Type)
	if name, ok := names[number]; ok {
		return name
	}
	return fmt.Sprintf("%#x", number)
}
