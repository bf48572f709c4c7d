package pebblestore

import (
	"context"
	"runtime/debug"
	"strconv"
	"time"

	"sagabench/internal/filesystem"
	"sagabench/store"
)

// Retention implements store.Store.
func (s *Store) Retention() time.Duration { return s.cfg.Retention }

// Settings implements store.Store.
func (s *Store) Settings(ctx context.Context) (_ store.Settings, err error) {
	if err := s.begin(ctx); err != nil {
		return store.Settings{}, err
	}
	defer s.end(&err)
	s.mu.Unlock()
	durability := store.D2
	if s.cfg.Sync {
		durability = store.D3
	}
	settings := store.Settings{
		Driver:     "pebble",
		Version:    version(),
		Durability: durability,
		Values: map[string]string{
			"sync":           strconv.FormatBool(s.cfg.Sync),
			"retention":      s.cfg.Retention.String(),
			"memtable_bytes": strconv.Itoa(memTableBytes),
			"cache_bytes":    strconv.Itoa(cacheBytes),
			"format":         s.db.FormatMajorVersion().String(),
		},
	}
	disk := filesystem.Of(s.cfg.Dir)
	return settings.WithFileSystem(disk, filesystem.InMemory(disk)), nil
}

// version returns the version of the Pebble module in this binary.
func version() string {
	const module = "github.com/cockroachdb/pebble/v2"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "v2, unknown"
}

// Counters implements store.CounterSource. Fsyncs counts those of the log, of tables and
// of directories. Debt is what has not been flushed, and what compactions have to write.
func (s *Store) Counters() store.Counters {
	s.mu.Lock()
	c := store.Counters{RoundTrips: s.commits, Fsyncs: s.disk.fsyncs.Load(), Written: s.disk.written.Load(), Debt: -1}
	s.mu.Unlock()
	if debt, err := s.debt(); err == nil {
		c.Debt = debt
	}
	return c
}

func (s *Store) debt() (bytes int64, err error) {
	if err := s.begin(context.Background()); err != nil {
		return 0, err
	}
	defer s.end(&err)
	s.mu.Unlock()
	m := s.db.Metrics()
	return int64(m.WAL.Size + m.Compact.EstimatedDebt), nil
}
