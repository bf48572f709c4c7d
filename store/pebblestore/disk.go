package pebblestore

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system under pebble, with one thing added: the first write
// that fails freezes it. From then on nothing in the directory changes, which
// leaves it as a power cut at that moment would have, and pebble recovers from
// that. The store refuses every call once its disk is frozen, so whatever pebble
// believes to have written since is never acknowledged.
//
// Pebble must not see the error itself. A failed write of its log makes it call
// Fatalf; a log that cannot be closed or begun makes it panic while it holds
// its locks, which ends in the unlock of an unlocked mutex that no recover can
// stop; a failed write of the manifest calls Fatalf as well. And without its
// flushes a write waits for ever. So on a frozen disk all goes well, as far as
// pebble can see: what it writes to files that are there is dropped, and new
// files are kept in memory. There will be few, for no changes come in any more.
//
// Tables are the exception, since pebble copes with an error there by writing
// the table again: one that was being written fails, so that it is not read as
// if it were whole, and compactions, which could go on for long, all do.
type disk struct {
	vfs.FS
	memory  *vfs.MemFS // the files made since the freeze, by their last name
	fsyncs  atomic.Int64
	failed  atomic.Pointer[failure]
	halted  atomic.Bool // pebble called Fatalf, and may hold its locks for ever
	onError func(error)
	closing chan struct{} // closed when nothing is worth waiting for
}

type failure struct{ err error }

// slowly is how long it takes for a compaction to fail on a frozen disk: pebble
// begins the next at once.
const slowly = 100 * time.Millisecond

func newDisk(base vfs.FS, onError func(error)) *disk {
	return &disk{FS: base, memory: vfs.NewMem(), onError: onError, closing: make(chan struct{})}
}

// failure is why the disk is frozen, or nil.
func (d *disk) failure() error {
	if f := d.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

func (d *disk) freeze(err error) {
	if d.failed.CompareAndSwap(nil, &failure{err}) {
		d.onError(err)
	}
}

// write does op, unless the disk is frozen, and freezes it when op fails.
func (d *disk) write(what, name string, op func() error) {
	if d.failure() != nil {
		return
	}
	if err := op(); err != nil {
		d.freeze(fmt.Errorf("%s %s: %w", what, filepath.Base(name), err))
	}
}

// create does op, which makes a file, or makes it in memory.
func (d *disk) create(name string, category vfs.DiskWriteCategory, op func() (vfs.File, error)) (vfs.File, error) {
	var made vfs.File
	d.write("create", name, func() error {
		f, err := op()
		if err == nil {
			made = &diskFile{File: f, disk: d, name: name}
		}
		return err
	})
	switch {
	case made != nil:
		return made, nil
	case category == "pebble-compaction":
		select {
		case <-time.After(slowly):
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

// Remove returns its error: a file too many harms nothing, and pebble copes.
func (d *disk) Remove(name string) error {
	if d.failure() != nil {
		_ = d.memory.Remove(filepath.Base(name))
		return nil
	}
	return d.FS.Remove(name)
}

// diskFile is a file on the disk that is open for writing, or a directory.
type diskFile struct {
	vfs.File
	disk *disk
	name string
}

// write does op unless the disk is frozen. It returns an error only for tables.
func (f *diskFile) write(what string, op func() error) error {
	f.disk.write(what, f.name, op)
	if ext := filepath.Ext(f.name); ext == ".sst" || ext == ".blob" {
		return f.disk.failure()
	}
	return nil
}

func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.write("write", func() error {
		_, err := f.File.Write(p)
		return err
	}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *diskFile) Sync() error {
	return f.write("sync", func() error {
		f.disk.fsyncs.Add(1)
		return f.File.Sync()
	})
}

func (f *diskFile) SyncData() error {
	return f.write("sync", func() error {
		f.disk.fsyncs.Add(1)
		return f.File.SyncData()
	})
}

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

// Preallocate is a hint: pebble ignores its error.
func (f *diskFile) Preallocate(offset, length int64) error {
	if f.disk.failure() != nil {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Close always closes: a frozen disk keeps no file open.
func (f *diskFile) Close() error {
	err := f.File.Close()
	if err == nil {
		return nil
	}
	return f.write("close", func() error { return err })
}
