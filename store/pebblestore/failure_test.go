package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/store"
)

// failing fails writes to base with ENOSPC: the first-th, and with always those
// that follow.
func failing(base vfs.FS, first int64, always bool) (fsys vfs.FS, failed *atomic.Bool) {
	var writes atomic.Int64
	failed = new(atomic.Bool)
	return errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpFileWrite,
			errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if n := writes.Add(1); n == first || n > first && always {
				failed.Store(true)
				return fmt.Errorf("write %d: %w", n, syscall.ENOSPC)
			}
		}
		return nil
	})), failed
}

// Whichever write is the one that fails, in Open, in a commit, in a change of
// logs, in a flush or a compaction or its note in the manifest: the caller gets
// the error, and a power cut right after loses nothing acknowledged.
func TestApply_FullDisk_AnswersAndLosesNothing(t *testing.T) {
	t.Parallel()
	step := int64(6) // 1 finds nothing more, and takes half a minute
	if race.Enabled {
		step = 24
	}
	for start, always := range map[int64]bool{1: true, 4: false} {
		t.Run(fmt.Sprintf("always=%t", always), func(t *testing.T) {
			t.Parallel()
			inOpen, inApply := 0, 0
			for first := start; first < 250; first += step {
				opened, failed := runUntilFull(t, first, always)
				switch {
				case !opened:
					inOpen++
				case failed:
					inApply++
				}
			}
			require.Positive(t, inOpen)
			require.Greater(t, inApply, int(100/step))
		})
	}
}

func runUntilFull(t *testing.T, first int64, always bool) (opened, full bool) {
	base := vfs.NewCrashableMem()
	fsys, failed := failing(base, first, always)
	cfg := DefaultConfig()
	cfg.Dir, cfg.fs, cfg.tune = "/store", fsys, small
	l := newLedger()
	s, err := Open(t.Context(), cfg)
	if err == nil {
		var workers sync.WaitGroup
		for w := range 3 {
			workers.Go(func() {
				if err := l.run(t.Context(), s, string(rune('a'+w)), 12); err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("write %d failed: %v", first, err)
				}
			})
		}
		workers.Wait()
		if full = failed.Load(); full {
			var err error
			// A goroutine of Pebble's own may have the error still to report.
			require.Eventually(t, func() bool {
				_, err = s.Get(t.Context(), "a-0")
				return err != nil
			}, time.Minute, time.Millisecond)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorContains(t, err, "must be opened again")
		}
		require.NoError(t, s.Close())
	} else {
		require.ErrorIs(t, err, syscall.ENOSPC)
	}

	// What a power cut would have left, and what is there.
	crash := vfs.CrashCloneCfg{UnsyncedDataPercent: int(first % 101), RNG: rand.New(rand.NewPCG(uint64(first), 1))}
	for _, after := range []vfs.FS{base.CrashClone(crash), base} {
		cfg.fs = after
		s, err := Open(t.Context(), cfg)
		require.NoError(t, err, "after write %d failed", first)
		l.check(t, s)
		require.NoError(t, s.Close())
	}
	return err == nil, full
}

// A store that has stopped releases its directory: what is mended can be
// opened again by the same process.
func TestClose_AfterAFailure_AllowsToOpenAgain(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	full := new(errorfs.Toggle)
	full.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			return syscall.EIO
		}
		return nil
	})
	cfg.fs = errorfs.Wrap(vfs.Default, full)
	s := open(t, cfg)
	must(t, s, advance("a", created))
	full.On()
	err := s.Apply(t.Context(), []store.Change{advance("b", created)})[0]
	require.ErrorIs(t, err, syscall.EIO)
	full.Off()
	require.ErrorIs(t, s.Apply(t.Context(), []store.Change{advance("c", created)})[0], syscall.EIO, "it does not go on")
	require.NoError(t, s.Close())

	again := open(t, cfg)
	require.Equal(t, created, stageOf(t, again, "a"))
	require.Equal(t, none, stageOf(t, again, "c"))
	must(t, again, advance("c", created))
	verify(t, again)
}

// What is fatal to pebble on a caller's goroutine is an error of the call. The
// pebble that is given up outlasts this test, with nothing to do.
func TestFatalf_StopsTheStoreAndNothingElse(t *testing.T) {
	t.Parallel()
	var broken atomic.Pointer[Store]
	cfg := DefaultConfig()
	cfg.Dir, cfg.fs = "/store", vfs.NewMem()
	cfg.tune = func(o *pebble.Options) {
		order := *pebble.DefaultComparer
		order.Compare = func(a, b []byte) int {
			if s := broken.Load(); s != nil {
				s.log.Fatalf("the order is broken at %d\nwith more to say", 7)
			}
			return pebble.DefaultComparer.Compare(a, b)
		}
		o.Comparer = &order
	}
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	must(t, s, advance("a", created))
	must(t, s, advance("a", ended))
	broken.Store(s)
	_, err = s.Get(t.Context(), "a")
	require.ErrorContains(t, err, "pebble cannot go on: the order is broken at 7")
	require.NotContains(t, err.Error(), "\n")
	require.ErrorContains(t, s.Apply(t.Context(), []store.Change{advance("b", created)})[0], "must be opened again")
	require.NoError(t, s.Close(), "at once, though pebble itself cannot be closed")
}
