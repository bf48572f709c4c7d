package pebblestore

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestOpen_AfterAPowerCut_FindsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for unsynced := 0; unsynced <= 100; unsynced += 10 {
		base := vfs.NewCrashableMem()
		cfg := DefaultConfig()
		cfg.Dir, cfg.fs, cfg.tune = "/store", base, small
		s := open(t, cfg)
		l := newLedger()
		var workers sync.WaitGroup
		for w := range 2 {
			workers.Go(func() {
				if err := l.run(t.Context(), s, string(rune('a'+w)), 15); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		cfg.fs = base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(uint64(unsynced), 1))})
		l.check(t, open(t, cfg))
	}
}

func TestApply_IsOneSync(t *testing.T) {
	t.Parallel()
	s := open(t, inTemp(t))
	before := s.Counters()
	must(t, s, advance("a", created), advance("b", created), advance("c", created))
	after := s.Counters()
	require.Equal(t, int64(1), after.RoundTrips-before.RoundTrips)
	require.Equal(t, int64(1), after.Fsyncs-before.Fsyncs)
}

// gate holds up every sync of a log while it is closed.
type gate struct {
	mu    sync.Mutex
	syncs chan struct{} // gets one for each sync that waits
}

func (g *gate) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpFileSyncData {
		select {
		case g.syncs <- struct{}{}:
		default:
		}
		g.mu.Lock()
		defer g.mu.Unlock()
	}
	return nil
}

func (g *gate) String() string { return "gate" }

// While a change is on its way to the disk, nobody is told that it is there.
func TestReaders_WaitForWhatTheySaw(t *testing.T) {
	t.Parallel()
	g := &gate{syncs: make(chan struct{}, 1)}
	cfg := inTemp(t)
	cfg.fs = errorfs.Wrap(vfs.Default, g)
	s := open(t, cfg)
	must(t, s, advance("a", created))
	for len(g.syncs) > 0 {
		<-g.syncs
	}

	g.mu.Lock()
	answers := make(chan string, 10)
	ask := func(name string, call func() error) {
		go func() {
			if err := call(); err != nil {
				name += ": " + err.Error()
			}
			answers <- name
		}()
	}
	ask("the write", func() error { return s.Apply(t.Context(), []store.Change{advance("a", ended)})[0] })
	<-g.syncs
	ask("Get", func() error { _, err := s.Get(t.Context(), "a"); return err })
	ask("List", func() error { _, err := s.List(t.Context(), store.Query{}); return err })
	ask("a stale transition", func() error { return s.Apply(t.Context(), []store.Change{advance("a", ended)})[0] })
	ask("the next create", func() error { return s.Apply(t.Context(), []store.Change{advance("b", created)})[0] })
	var got []string
	select {
	case name := <-answers:
		t.Errorf("answered too early: %s", name)
		got = append(got, name)
	case <-time.After(50 * time.Millisecond):
	}
	g.mu.Unlock()

	for len(got) < 5 {
		got = append(got, <-answers)
	}
	require.ElementsMatch(t, []string{
		"the write", "Get", "List", "the next create",
		"a stale transition: transition of a: the saga has changed meanwhile: it has ended",
	}, got)
}

// Without sync the log is on disk soon, though nothing else is written.
func TestSyncLog_WritesWhatIsNotOnDisk(t *testing.T) {
	t.Parallel()
	base := vfs.NewCrashableMem()
	cfg := DefaultConfig()
	cfg.Dir, cfg.fs, cfg.Sync = "/store", base, false
	s := open(t, cfg)
	must(t, s, advance("a", created))
	require.NoError(t, s.syncLog(t.Context()))
	must(t, s, advance("b", created))

	cfg.fs = base.CrashClone(vfs.CrashCloneCfg{})
	crashed := open(t, cfg)
	require.Equal(t, created, stageOf(t, crashed, "a"))
	require.Equal(t, none, stageOf(t, crashed, "b"))

	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.D2, settings.Durability)
}
