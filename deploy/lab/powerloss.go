package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// unsyncedDir has the logs of what the server has written and not synced, which it writes
// itself. It is beside the server's directory.
const unsyncedDir = ".unsynced"

// LosePower ends the server like Kill. Then it undoes what the server had written and not
// synced, as if the machine had lost its power. Restart starts the server again. The
// server must have been started with Config.PowerLoss.
//
// Writes with O_DSYNC and O_SYNC count as synced, sync_file_range does not sync. These
// count as synced at once: new names of files and removed ones, preallocation, O_TRUNC,
// and what is written by stdio, shared mappings, libaio and io_uring.
func (s *Server) LosePower() error {
	if !s.powerLoss {
		return errors.New("take the power from a server: it was started without PowerLoss")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	s.process.Kill()
	if err := s.undoUnsynced(); err != nil {
		return fmt.Errorf("take the power from a server: %w", err)
	}
	return s.forgetUnsynced()
}

// forgetUnsynced empties the directory of the logs, or makes it.
func (s *Server) forgetUnsynced() error {
	dir := s.dir + unsyncedDir
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil || s.account == "" {
		return err
	}
	return changeOwner(s.account, dir)
}

// undoUnsynced changes the files of the server to what they were when they were last
// synced. The server's account can write to both directories. So nothing is changed
// outside of the server's, and no file that is another account's.
func (s *Server) undoUnsynced() error {
	files, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer files.Close()
	logs, err := os.OpenRoot(s.dir + unsyncedDir)
	if err != nil {
		return err
	}
	defer logs.Close()
	owner, known := ownerOf(s.dir)
	if !known {
		return fmt.Errorf("%s has no owner", s.dir)
	}
	return fs.WalkDir(files.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := files.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		name, fileOwner, err := identity(file)
		if err == nil && fileOwner == owner {
			err = undoFile(logs, name, file)
		}
		return errors.Join(err, file.Close())
	})
}

// undoFile undoes what the file's log holds, if it has one.
func undoFile(logs *os.Root, name string, file *os.File) error {
	log, err := logs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	if err := lockFile(log); err != nil { // by then, a process that was killed in the middle of a write is gone
		return err
	}
	entries, err := readUnsynced(log)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	for _, e := range slices.Backward(entries) {
		if err := file.Truncate(e.Size); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(file, e.Offset), io.NewSectionReader(log, e.old, e.N)); err != nil {
			return err
		}
	}
	return nil
}

// unsyncedWrite is an entry of a log, as disk.c writes it.
type unsyncedWrite struct {
	unsyncedFields
	old int64 // where in the log the old bytes are
}

type unsyncedFields struct {
	Offset, Size int64 // of the write, and of the file before it
	N            int64 // how many old bytes follow
}

// readUnsynced returns the entries of a log that are not synced, oldest first.
func readUnsynced(log *os.File) (entries []unsyncedWrite, err error) {
	var header struct{ Synced, End int64 }
	if err := binary.Read(log, binary.NativeEndian, &header); errors.Is(err, io.EOF) {
		return nil, nil // the first entry was not complete
	} else if err != nil {
		return nil, err
	}
	for at := header.Synced; at < header.End; {
		var e unsyncedWrite
		fields := io.NewSectionReader(log, at, int64(binary.Size(e.unsyncedFields)))
		if err := binary.Read(fields, binary.NativeEndian, &e.unsyncedFields); err != nil {
			return nil, err
		}
		e.old = at + fields.Size()
		if at = e.old + e.N; e.N < 0 || e.Offset < 0 || e.Size < 0 || at > header.End {
			return nil, errors.New("the log of what is not synced is not one of ours")
		}
		entries = append(entries, e)
	}
	return entries, nil
}
