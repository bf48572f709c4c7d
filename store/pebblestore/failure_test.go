package pebblestore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// small makes a store rotate its log and write tables every few batches.
func small(o *pebble.Options) {
	o.MemTableSize = 32 << 10
	o.L0CompactionThreshold = 2
}

// fullDisk fails writes with ENOSPC, from the first-th on: only that one, or
// all that follow.
func fullDisk(base vfs.FS, first int64, once bool) (fs vfs.FS, writes *atomic.Int64) {
	writes = new(atomic.Int64)
	return errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpFileWrite,
			errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if n := writes.Add(1); n == first || (n > first && !once) {
				return fmt.Errorf("write %d: %w", n, syscall.ENOSPC)
			}
		}
		return nil
	})), writes
}

func TestApply_FullDisk_AnswersAndLosesNothing(t *testing.T) {
	t.Parallel()
	var failed int
	for _, once := range []bool{true, false} {
		for first := int64(1); first < 400; first++ {
			if runOnFullDisk(t, first, once) {
				failed++
			}
		}
	}
	fmt.Println("runs that failed", failed)
}

// runOnFullDisk reports whether the disk got full.
func runOnFullDisk(t *testing.T, first int64, once bool) bool {
	base := vfs.NewCrashableMem()
	full, writes := fullDisk(base, first, once)
	cfg := DefaultConfig()
	cfg.Dir, cfg.fs, cfg.tune = "/store", full, small
	l := newLedger()
	s, err := Open(t.Context(), cfg)
	if err == nil {
		var workers sync.WaitGroup
		for w := range 3 {
			workers.Go(func() {
				if err := l.run(s, string(rune('a'+w)), 8); err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("write %d: %v", first, err)
				}
			})
		}
		workers.Wait()
		if writes.Load() >= first {
			err = s.failure()
		}
		require.NoError(t, s.Close())
	}
	if writes.Load() >= first {
		if err == nil {
			fmt.Println("unnoticed", first, once)
		}
	}

	// What is left is what a power cut would leave.
	cfg.fs = base.CrashClone(vfs.CrashCloneCfg{})
	s, err2 := Open(t.Context(), cfg)
	require.NoError(t, err2, "after write %d failed, once %t", first, once)
	l.check(t, s)
	require.NoError(t, s.Close())
	return err != nil
}

var _ store.Store
