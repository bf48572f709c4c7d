package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sagabench/store"
)

// formatFile marks a directory as a store and names its layout. It is written
// before any other file.
const (
	formatFile = "SAGABENCH"
	formatTemp = formatFile + ".tmp"
	formatText = "sagabench pebble store, layout 1\n"
)

// lockDir creates the directory and locks it.
func (s *Store) lockDir() error {
	dir, fsys := s.cfg.Dir, s.cfg.fs
	if s.cfg.MustExist {
		if _, err := fsys.Stat(fsys.PathJoin(dir, formatFile)); err != nil {
			return fmt.Errorf("open the pebble store %s: %w: %w", dir, store.ErrAbsent, err)
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the directory of the pebble store: %w", err)
	}
	// Within one process, a lock is known by the directory's name alone.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	s.cfg.Dir = dir
	if err := s.checkDir(); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(dir, fsys)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("lock the pebble store: %w", err)
	case err != nil:
		return fmt.Errorf("open the pebble store %s: %w (%v); stop that one, or use another directory", dir, store.ErrInUse, err)
	}
	s.lock = lock
	return nil
}

// checkDir refuses a directory that contains files but no store of this package,
// before anything is written to it.
func (s *Store) checkDir() error {
	names, err := s.cfg.fs.List(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read the directory of the pebble store: %w", err)
	}
	if slices.Contains(names, formatFile) {
		return nil
	}
	for _, name := range names {
		if name != "LOCK" && name != formatTemp {
			return fmt.Errorf("%s: %w: it contains other files (%s) and no store of sagas; use another directory",
				s.cfg.Dir, store.ErrUnsafe, name)
		}
	}
	return nil
}

// checkFormat refuses another layout than this version's, and writes the format
// file in a new directory.
func (s *Store) checkFormat() error {
	path := s.cfg.fs.PathJoin(s.cfg.Dir, formatFile)
	f, err := s.cfg.fs.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.writeFormat(path)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if string(text) != formatText {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		return fmt.Errorf("%w: its layout is %q and this version knows %q; use the version that wrote it",
			store.ErrUnsafe, line, formatText[:len(formatText)-1])
	}
	return nil
}

func (s *Store) writeFormat(path string) (err error) {
	fsys := s.cfg.fs
	temp := fsys.PathJoin(s.cfg.Dir, formatTemp)
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, formatText)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temp, path); err != nil {
		return err
	}
	dir, err := fsys.OpenDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
