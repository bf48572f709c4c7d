package pebblestore

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sagabench/store"
)

// formatFile names the file that marks a directory as a store and says which
// layout it has. It is there before anything else is.
const (
	formatFile = "SAGABENCH"
	formatTemp = formatFile + ".tmp"
	formatText = "sagabench pebble store, layout 1\n"
)

// maxLoadedGIDs bounds what Open reads of the finished sagas, to about a second.
// Gids that it did not read are looked up on disk until their sagas expire.
const maxLoadedGIDs = 4 << 20

// Open opens the store in cfg.Dir, or makes one. It reads all unfinished sagas
// into memory, and of the finished up to 4 million gids. Its errors wrap store.ErrInUse when another Store, of this
// process or another, has the directory, and store.ErrUnsafe when the directory
// holds something else than a store that this version can read.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cfg, err = cfg.check()
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg:   cfg,
		stop:  make(chan struct{}),
		sagas: make(map[string]*saga),
		seed:  maphash.MakeSeed(),
	}
	s.disk = newDisk(cfg.fs, func(err error) {
		cfg.Log.Error("the pebble store has stopped", "dir", cfg.Dir, "err", err)
	})
	s.log = &logger{log: cfg.Log, disk: s.disk}
	s.close = sync.OnceValue(s.shut)
	if err := s.lockDir(); err != nil {
		return nil, err
	}
	if err := s.openDB(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the pebble store %s: %w", s.cfg.Dir, err), s.release())
	}
	s.calls.Go(s.sweepNowAndThen)
	return s, nil
}

// lockDir makes the directory and takes its lock.
func (s *Store) lockDir() error {
	dir, fsys := s.cfg.Dir, s.cfg.fs
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the pebble store: %w", err)
	}
	// Locks go by the name, and within one process by nothing else.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
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
		return fmt.Errorf("the pebble store %s: %w (%v): stop that one, or use another directory", dir, store.ErrInUse, err)
	}
	s.lock = lock
	return nil
}

// checkDir refuses a directory that holds files but no store of ours, before
// anything is written to it.
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
			return fmt.Errorf("%s: %w: it holds other files (%s) and no pebble store of ours; use another directory",
				s.cfg.Dir, store.ErrUnsafe, name)
		}
	}
	return nil
}

// checkFormat compares the layout on disk with ours, and notes ours in a
// directory that is new. The lock is held.
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

// openDB opens what the locked directory holds.
func (s *Store) openDB(ctx context.Context) (err error) {
	defer s.log.rescue(&err)
	if err := s.checkFormat(); err != nil {
		return err
	}
	s.db, err = pebble.Open(s.cfg.Dir, s.options())
	if err == nil {
		// A frozen disk makes pebble believe that it could open.
		err = s.disk.failure()
	}
	if err == nil {
		err = s.load(ctx)
	}
	return err
}

// load reads the unfinished sagas and finds the buckets of the finished.
func (s *Store) load(ctx context.Context) error {
	err := s.scan(unfinishedKey, func(it *pebble.Iterator) error {
		for valid := it.First(); valid; valid = it.Next() {
			g, err := readSaga(it)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			g.pos = len(s.due)
			s.due = append(s.due, g)
			s.sagas[g.gid] = g
			s.lastID = g.id
		}
		heap.Init(&s.due)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.scan(finishedKey, func(it *pebble.Iterator) error {
		if it.Last() {
			s.lastID = max(s.lastID, numberIn(it.Key()))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.scan(gidKey, s.loadBuckets)
}

// loadBuckets finds the buckets of the finished sagas, and fills their filters
// until it has read as many gids as it may.
func (s *Store) loadBuckets(it *pebble.Iterator) error {
	read := 0
	for valid := it.First(); valid; read++ {
		start := int64(numberIn(it.Key()))
		if n := len(s.buckets); n == 0 || s.buckets[n-1].start != start {
			s.buckets = append(s.buckets, bucket{start: start, gids: new(filter)})
		}
		b := &s.buckets[len(s.buckets)-1]
		if read >= maxLoadedGIDs {
			b.gids = nil
			valid = it.SeekGE(appendBucket(nil, start+1))
			continue
		}
		b.gids.add(maphash.Bytes(s.seed, it.Key()[bucketKeyBytes:]))
		valid = it.Next()
	}
	if len(s.buckets) == 0 {
		s.beginBucket(s.now())
	}
	return nil
}

// scan runs f over the keys with the prefix.
func (s *Store) scan(prefix byte, f func(*pebble.Iterator) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
	if err != nil {
		return err
	}
	return errors.Join(f(it), it.Error(), it.Close())
}

// readSaga reads the unfinished saga at it.
func readSaga(it *pebble.Iterator) (*saga, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, err
	}
	gid, rec, err := splitEntry(bytes.Clone(value))
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", it.Key(), err)
	}
	if rec.status().Final() {
		return nil, fmt.Errorf("unfinished saga %s: its status is %v", gid, rec.status())
	}
	return &saga{gid: string(gid), id: numberIn(it.Key()), rec: rec}, nil
}

// shut ends the calls under way and the sweeper, then the database.
func (s *Store) shut() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.calls.Wait()
	if err := s.release(); err != nil {
		return fmt.Errorf("close the pebble store %s: %w", s.cfg.Dir, err)
	}
	return nil
}

// release gives up what Open took. A halted pebble cannot be closed and keeps
// the directory until the process ends.
func (s *Store) release() (err error) {
	close(s.disk.closing)
	if s.disk.halted.Load() {
		return nil
	}
	if s.db != nil {
		err = s.db.Close()
	}
	return errors.Join(err, s.lock.Close())
}
