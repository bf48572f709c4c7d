package pebblestore

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system under Pebble. The first write that fails freezes it: from
// then on the directory does not change, as after a power cut at that moment, from
// which Pebble recovers. The store refuses every call once its disk is frozen, so
// nothing that Pebble believes to have written since is acknowledged.
//
// Pebble must not see the error. A failed write of its log or its manifest makes it
// call Fatalf. A log that it cannot close or create makes it panic with its locks
// taken, which ends in an unlock of an unlocked mutex that no recover stops. And
// without flushes a write waits for ever. Pebble's own wrappers (vfs.OnDiskFull,
// vfs.WithDiskHealthChecks) report a full or slow disk, and still pass the error on.
// So on a frozen disk every write succeeds: to existing files it is dropped, and new
// files are in memory. These are few, since the store takes no more changes.
//
// Tables are the exception, since Pebble copes with an error there by writing the
// table again. A write to a table that was begun before fails, so that nobody reads
// it as complete, and so does every compaction, which could go on for long.
type disk struct {
	vfs.FS
	memory  *vfs.MemFS // the files created since the freeze, by base name
	fsyncs  atomic.Int64
	written atomic.Int64 // bytes of pages
	failed  atomic.Pointer[error]
	halted  atomic.Bool // Pebble called Fatalf, and may never release its locks
	onError func(error)
	closing chan struct{} // closed by Close
}

// compactionPause is how long a compaction takes to fail on a frozen disk: Pebble
// starts the next one at once.
const compactionPause = 100 * time.Millisecond

func newDisk(base vfs.FS, onError func(error)) *disk {
	return &disk{FS: base, memory: vfs.NewMem(), onError: onError, closing: make(chan struct{})}
}

// failure returns why the disk is frozen, or nil.
func (d *disk) failure() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *disk) freeze(err error) {
	if d.failed.CompareAndSwap(nil, &err) {
		d.onError(err)
	}
}

// write runs op unless the disk is frozen, and freezes the disk if op fails.
func (d *disk) write(what, name string, op func() error) {
	if d.failure() != nil {
		return
	}
	if err := op(); err != nil {
		d.freeze(fmt.Errorf("%s %s: %w", what, filepath.Base(name), err))
	}
}

// create runs op, which creates a file on disk. On a frozen disk it creates the
// file in memory, unless a compaction asks.
func (d *disk) create(name string, category vfs.DiskWriteCategory, op func() (vfs.File, error)) (vfs.File, error) {
	var created vfs.File
	d.write("create", name, func() error {
		f, err := op()
		if err == nil {
			created = &diskFile{File: f, disk: d, name: name}
		}
		return err
	})
	switch {
	case created != nil:
		return created, nil
	case category == "pebble-compaction":
		select {
		case <-time.After(compactionPause):
		case <-d.closing:
		}
		return nil, d.failure()
	default:
		return d.memory.Create(filepath.Base(name), category)
	}
}

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(name, category, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(newname, category, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, disk: d, name: name}, nil
}

func (d *disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if d.failure() != nil {
		if f, err := d.memory.Open(filepath.Base(name), opts...); err == nil {
			return f, nil
		}
	}
	return d.FS.Open(name, opts...)
}

func (d *disk) Stat(name string) (vfs.FileInfo, error) {
	if d.failure() != nil {
		if info, err := d.memory.Stat(filepath.Base(name)); err == nil {
			return info, nil
		}
	}
	return d.FS.Stat(name)
}

func (d *disk) Rename(oldname, newname string) error {
	d.write("rename", oldname, func() error { return d.FS.Rename(oldname, newname) })
	if d.failure() != nil {
		_ = d.memory.Rename(filepath.Base(oldname), filepath.Base(newname))
	}
	return nil
}

// Remove returns its error: Pebble copes with a file too many.
func (d *disk) Remove(name string) error {
	if d.failure() != nil {
		_ = d.memory.Remove(filepath.Base(name))
		return nil
	}
	return d.FS.Remove(name)
}

// diskFile is a directory, or a file on disk that is open for writing.
type diskFile struct {
	vfs.File
	disk *disk
	name string

	end   int64       // of what was written
	dirty atomic.Bool // the last page waits to be written, so more in it costs nothing
}

// page is what the kernel writes at once.
const page = 4096

// count adds the pages that a write of n bytes at the end of the file has made dirty.
func (f *diskFile) count(n int) {
	first := f.end / page
	if f.dirty.Load() && f.end%page != 0 {
		first++
	}
	f.end += int64(n)
	f.disk.written.Add(max(0, (f.end+page-1)/page-first) * page)
	f.dirty.Store(true)
}

// write runs op unless the disk is frozen. It returns an error only for tables.
func (f *diskFile) write(what string, op func() error) error {
	f.disk.write(what, f.name, op)
	if ext := filepath.Ext(f.name); ext == ".sst" || ext == ".blob" {
		return f.disk.failure()
	}
	return nil
}

func (f *diskFile) Write(p []byte) (int, error) {
	err := f.write("write", func() error {
		n, err := f.File.Write(p)
		f.count(n)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *diskFile) sync(op func() error) error {
	return f.write("sync", func() error {
		f.disk.fsyncs.Add(1)
		f.dirty.Store(false)
		return op()
	})
}

func (f *diskFile) Sync() error { return f.sync(f.File.Sync) }

func (f *diskFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.write("sync", func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	if full {
		f.disk.fsyncs.Add(1)
	}
	return full, err
}

// Preallocate returns nil on a frozen disk. Pebble ignores its error.
func (f *diskFile) Preallocate(offset, length int64) error {
	if f.disk.failure() != nil {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Close closes the file on a frozen disk as well.
func (f *diskFile) Close() error {
	err := f.File.Close()
	if err == nil {
		return nil
	}
	return f.write("close", func() error { return err })
}
