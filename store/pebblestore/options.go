package pebblestore

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Measured on two cores of an AMD EPYC (32 MiB of L3 cache), the lowest of four
// runs: 400,000 sagas of two steps and bodies of 330 bytes, in batches of 66 changes
// without fsync, take 8.5 µs of CPU a saga. Of these, Pebble's flushes are 1.5 µs and
// its compactions 1.8 µs.
const (
	// With 8 MiB a saga takes 11.0 µs, since tables are small and compacted more
	// often; with 32 MiB 8.1 µs; with 64 MiB 9.1 µs. The log is as large. After the
	// first few it is written over old ones, which takes a third off the CPU and the
	// time of an fsync.
	memTableBytes = 16 << 20

	// The cache includes the memtables, also those that wait for their flush. It
	// matters for searches of gids on disk: with a million finished sagas a saga
	// takes 20 µs, and 47 µs with 32 MiB.
	cacheBytes       = 128 << 20
	waitingMemTables = 4

	// With Pebble's default of 4 a saga takes 9.8 µs, with 16 9.4 µs.
	tablesPerCompaction = 8
)

// options are Pebble's defaults with these changes. The default compression, snappy,
// costs nothing that could be measured.
func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		FS:            s.disk,
		Lock:          s.lock,
		Logger:        s.log,
		EventListener: s.log.events(),

		// The newest format of the Pebble version in go.mod. It is named here so
		// that a newer Pebble does not change the files of a store that an older
		// program may have to open again.
		FormatMajorVersion: pebble.FormatValueSeparation,

		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: waitingMemTables,
		CacheSize:                   cacheBytes,
		L0CompactionThreshold:       tablesPerCompaction,

		// No write waits for compactions: all of them fail on a frozen disk.
		L0StopWritesThreshold: 1000,

		// Frees the disk soon after a sweep, also in a store that is idle.
		FlushDelayDeleteRange: 10 * time.Second,
	}
	// For searches of gids on disk: without it a saga takes 22 µs if there are a
	// million of them.
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	// A table contains keys of one kind only. So the tables of finished sagas,
	// whose ids rise, do not overlap and are not merged with earlier ones. Otherwise
	// a saga takes 9.4 µs, and more the more sagas there are.
	o.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil
	}
	if s.cfg.tune != nil {
		s.cfg.tune(o)
	}
	return o
}
