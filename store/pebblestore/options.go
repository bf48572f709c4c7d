package pebblestore

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Measured on two cores of an AMD EPYC (32 MiB of L3 cache), the least of four
// runs: 400,000 sagas of two steps and bodies of 330 bytes in batches of 66
// changes, without fsync, take 8.5 µs of CPU a saga. Pebble's flushes are 1.5 of
// these and its compactions 1.8.
const (
	// 8 MiB: 11.0 µs, the tables are small and compacted more often; 32 MiB:
	// 8.1; 64: 9.1. The log is as large. After the first few it is written over
	// old ones, which takes a third off the CPU and the time of an fsync.
	memTableBytes = 16 << 20

	// Memtables, also those that wait for their flush, count as part of the
	// cache. It matters when gids are looked for on disk: with a million
	// finished sagas 20 µs a saga, and 47 with 32 MiB.
	cacheBytes       = 128 << 20
	waitingMemTables = 4

	// Pebble's default is 4: 9.8 µs. 16: 9.4.
	tablesPerCompaction = 8
)

// options are pebble's defaults but for what is said here. Its compression,
// snappy, stays: it costs nothing that could be measured.
func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		FS:            s.disk,
		Lock:          s.lock,
		Logger:        s.log,
		EventListener: s.log.events(),

		// The newest of the pebble version that this was written with. Naming
		// it keeps a newer pebble from changing the files of a store that an
		// older program may have to open again.
		FormatMajorVersion: pebble.FormatValueSeparation,

		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: waitingMemTables,
		CacheSize:                   cacheBytes,
		L0CompactionThreshold:       tablesPerCompaction,

		// No write waits for compactions, which a frozen disk has none of.
		L0StopWritesThreshold: 1000,

		// What was swept is off the disk soon, also when nothing else happens.
		FlushDelayDeleteRange: 10 * time.Second,
	}
	// For gids that are looked for on disk, a million of them there: 22 µs a
	// saga without.
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	// A table holds keys of one kind only. So those with the finished sagas,
	// whose ids rise, follow each other and are not merged with the ones before:
	// 9.4 µs otherwise, and more the more sagas there are.
	o.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil
	}
	if s.cfg.tune != nil {
		s.cfg.tune(o)
	}
	return o
}
