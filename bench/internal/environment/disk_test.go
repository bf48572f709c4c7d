package environment

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/filesystem"
)

func TestDisk_MeasuresFsyncsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := Disk(dir, 50*time.Millisecond)
	require.Equal(t, filesystem.Of(dir), d.FileSystem)
	require.Positive(t, *d.FsyncP50MS)
	require.GreaterOrEqual(t, *d.FsyncP99MS, *d.FsyncP50MS)
	require.GreaterOrEqual(t, *d.FsyncMaxMS, *d.FsyncP99MS)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	if d.Device != "" {
		require.FileExists(t, filepath.Join("/sys/class/block", d.Device, "dev"))
		require.NotNil(t, d.Rotational)
	}
}

func TestDisk_WhatIsUnknownIsNil(t *testing.T) {
	t.Parallel()
	d := Disk(filepath.Join(t.TempDir(), "absent"), 0)
	require.Empty(t, d.FileSystem)
	require.Empty(t, d.Device)
	require.Nil(t, d.Rotational)
	require.Nil(t, d.FsyncP50MS)
	require.Nil(t, d.FsyncP99MS)
	if runtime.GOOS == "linux" {
		require.Empty(t, Disk("/dev/shm", 0).Device, "memory is no device")
	}
}

func TestMount_IsTheTopOfTheFileSystem(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"/": "/", "/proc": "/proc", "/proc/self/task": "/proc", "/nowhere": ""} {
		require.Equal(t, want, mount(dir), dir)
	}
}
