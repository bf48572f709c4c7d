package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncLog is a file system that records how much of each file is on disk, in the file
// that Config.SyncLog names. Pebble writes to the end of files only, so that is a length.
// A line has the length and the name of a file, or -1 and two names for a file that is
// renamed.
type syncLog struct {
	vfs.FS
	path string
}

// renamed takes the place of a length.
const renamed = -1

func (l *syncLog) add(length int64, names ...string) error {
	line := fmt.Append(nil, length)
	for _, name := range names {
		line = fmt.Append(line, " ", filepath.Base(name))
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // at once, so that lines of two goroutines do not mix
	return errors.Join(err, f.Close())
}

// Create implements vfs.FS. The new file is on disk, and empty.
func (l *syncLog) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(name, category)
	return l.record(name, f, err)
}

// ReuseForWrite implements vfs.FS. What the file had counts as gone: Pebble reads it as
// the end of the log.
func (l *syncLog) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.ReuseForWrite(oldname, newname, category)
	return l.record(newname, f, err)
}

func (l *syncLog) record(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	if err := l.add(0, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &syncLogFile{File: f, log: l, name: name}, nil
}

// Rename implements vfs.FS.
func (l *syncLog) Rename(oldname, newname string) error {
	if err := l.FS.Rename(oldname, newname); err != nil {
		return err
	}
	return l.add(renamed, oldname, newname)
}

// syncLogFile is open for writing.
type syncLogFile struct {
	vfs.File
	log  *syncLog
	name string
	end  atomic.Int64
}

func (f *syncLogFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.end.Add(int64(n))
	return n, err
}

// sync records what was written before op, which says whether that is on disk then.
func (f *syncLogFile) sync(op func() (bool, error)) (bool, error) {
	length := f.end.Load()
	full, err := op()
	if full && err == nil {
		err = f.log.add(length, f.name)
	}
	return full, err
}

func (f *syncLogFile) Sync() error {
	_, err := f.sync(func() (bool, error) { return true, f.File.Sync() })
	return err
}

func (f *syncLogFile) SyncData() error {
	_, err := f.sync(func() (bool, error) { return true, f.File.SyncData() })
	return err
}

func (f *syncLogFile) SyncTo(length int64) (full bool, err error) {
	return f.sync(func() (bool, error) { return f.File.SyncTo(length) })
}

// LosePower cuts the files of a store that a process has left, as if the machine had
// lost its power: each to the length that was synced. syncLog is its Config.SyncLog.
// New names of files and removed ones count as synced at once.
func LosePower(dir, syncLog string) error {
	synced, err := readSyncLog(syncLog)
	if err != nil {
		return fmt.Errorf("take the power from the pebble store %s: %w", dir, err)
	}
	for name, length := range synced {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && info.Size() > length {
			err = os.Truncate(path, length)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the power from the pebble store: %w", err)
		}
	}
	return nil
}

// readSyncLog returns the synced length of each file by its name.
func readSyncLog(path string) (map[string]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	synced := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") { // the process was killed in the middle of it
			break
		}
		var length int64
		var name, newname string
		if n, _ := fmt.Sscanln(line, &length, &name, &newname); n < 2 || (n == 3) != (length == renamed) {
			return nil, fmt.Errorf("%s: %q, want a length and a name", path, line)
		}
		if length == renamed {
			synced[newname] = synced[name]
			delete(synced, name)
		} else {
			synced[name] = length
		}
	}
	return synced, nil
}
