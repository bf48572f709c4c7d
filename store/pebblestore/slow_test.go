package pebblestore

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sagabench/store"
	"sagabench/store/disktest"
)

// machine is a store's process and disk, as the suite wants them.
type machine struct {
	fs          *vfs.MemFS
	delay, held atomic.Int64

	mu      sync.Mutex
	running *client
}

// client is the store, which several have open.
type client struct {
	*Store
	m     *machine
	users int
}

func (m *machine) open(t testing.TB) store.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil || m.running.users == 0 {
		cfg := DefaultConfig()
		cfg.Dir, cfg.fs, cfg.tune = "/store", errorfs.Wrap(m.fs, m), small
		s, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		m.running = &client{Store: s, m: m}
	}
	m.running.users++
	return m.running
}

func (c *client) Close() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.users--; c.users > 0 {
		return nil
	}
	return c.Store.Close()
}

func (m *machine) SlowSync(d time.Duration) error {
	m.delay.Store(int64(d))
	return nil
}

func (m *machine) DelayedSyncs() (int64, error) { return m.held.Load(), nil }

// Kill goes on with the disk as a crash leaves it. The process itself cannot be
// killed; it goes on with the disk from before.
func (m *machine) Kill() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fs = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(rand.Uint64(), 1))})
	m.running = nil
	return nil
}

func (m *machine) Restart(context.Context) error { return nil }

// MaybeError delays the syncs.
func (m *machine) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
	default:
		return nil
	}
	began, counted := time.Now(), false
	for time.Since(began) < time.Duration(m.delay.Load()) {
		if !counted {
			m.held.Add(1)
			counted = true
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (m *machine) String() string { return "slow syncs" }

func TestStore_OnASlowDisk(t *testing.T) {
	t.Parallel()
	m := &machine{fs: vfs.NewCrashableMem()}
	disktest.Run(t, m, m.open)
}
