package environment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/filesystem"
)

// How the latency of an fsync is measured.
const (
	leastFsyncs = 100
	fsyncBytes  = 4096
	fsyncTime   = 2 * time.Second // at most for leastFsyncs
)

// Disk describes the file system and the device of a directory. It measures how long it
// takes to append 4 KiB to a file there and to fsync it, for a time: a stall may be rare. What cannot be found out is nil or
// empty, as the latencies of a directory that must not be written to.
func Disk(dir string, length time.Duration) *result.StoreDisk {
	d := &result.StoreDisk{FileSystem: filesystem.Of(dir)}
	d.Mount = mount(dir)
	d.Device, d.Rotational = device(dir)
	took, err := timeFsyncs(dir, length)
	if err == nil && len(took) > 0 {
		p50, p99, most := result.Round(stats.Median(took)), result.Round(stats.Quantile(took, 0.99)), result.Round(slices.Max(took))
		d.FsyncP50MS, d.FsyncP99MS, d.FsyncMaxMS = &p50, &p99, &most
	}
	return d
}

// timeFsyncs returns milliseconds.
func timeFsyncs(dir string, length time.Duration) (took []float64, err error) {
	f, err := os.CreateTemp(dir, "fsync-*.tmp")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, fsyncBytes)
	start := time.Now()
	more := func(passed time.Duration) bool {
		return passed < length || passed < fsyncTime && len(took) < leastFsyncs
	}
	for began := start; more(began.Sub(start)); began = time.Now() {
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began))/float64(time.Millisecond))
	}
	return took, nil
}

// mount returns the directory that the file system of dir is mounted on.
func mount(dir string) string {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return ""
	}
	var here, above unix.Stat_t
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if unix.Stat(dir, &here) != nil || unix.Stat(filepath.Dir(dir), &above) != nil {
			return ""
		}
		if here.Dev != above.Dev {
			break
		}
	}
	return dir
}

// device returns the kernel's name of the block device, as vda1, and whether it rotates.
// File systems over several devices, or over none, have no name.
func device(dir string) (name string, rotational *bool) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return "", nil
	}
	number := uint64(stat.Dev) // it has another type on other systems
	path, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(number), unix.Minor(number)))
	if err != nil {
		return "", nil
	}
	for _, at := range []string{path, filepath.Dir(path)} { // a partition, and its disk
		if text, err := os.ReadFile(filepath.Join(at, "queue", "rotational")); err == nil {
			rotates := strings.TrimSpace(string(text)) == "1"
			rotational = &rotates
			break
		}
	}
	return filepath.Base(path), rotational
}
