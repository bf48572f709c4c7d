package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// SlowServer is the server of a store, and its disk: a *lab.Server that was started
// with SlowSync.
type SlowServer interface {
	// SlowSync makes each sync take d longer, from now on and also those that have
	// begun.
	SlowSync(d time.Duration) error

	// HeldSyncs counts the syncs that SlowSync has made wait, or does.
	HeldSyncs() (int64, error)

	// Kill ends the server as a crash does. Restart starts it again.
	Kill() error
	Restart(ctx context.Context) error
}

// RunSlowDisk tests that nobody is shown what a crash could undo. Each call of open
// gives one more client of a store of class D3 on the server, which the suite closes.
func RunSlowDisk(t *testing.T, server SlowServer, open func(t testing.TB) store.Store) {
	t.Run("Readers_WaitForTheDisk", func(t *testing.T) { readersWait(disk{t, server, open}) })
	t.Run("Crash_UndoesNothingThatWasShown", func(t *testing.T) { crashes(disk{t, server, open}) })
}

// disk fails the test when the server cannot do its part.
type disk struct {
	t      *testing.T
	server SlowServer
	open   func(t testing.TB) store.Store
}

func (d disk) client() store.Store {
	d.t.Helper()
	s := d.open(d.t)
	found, err := s.Settings(d.t.Context())
	require.NoError(d.t, err)
	require.GreaterOrEqual(d.t, found.Durability, store.D3)
	return s
}

func (d disk) slow(by time.Duration) {
	d.t.Helper()
	require.NoError(d.t, d.server.SlowSync(by))
}

func (d disk) held() int64 {
	d.t.Helper()
	n, err := d.server.HeldSyncs()
	require.NoError(d.t, err)
	return n
}

// crash leaves a server that is well and fast.
func (d disk) crash() {
	d.t.Helper()
	require.NoError(d.t, d.server.Kill())
	d.slow(0)
	require.NoError(d.t, d.server.Restart(context.WithoutCancel(d.t.Context())))
}

// readersWait writes while nothing gets to the disk.
func readersWait(d disk) {
	t := d.t
	const enough = 200 * time.Millisecond // for an answer that does not wait
	writer, reader := d.client(), d.client()
	defer writer.Close()
	defer reader.Close()
	prefix := fmt.Sprintf("wait-%d-", rand.Uint32())
	name := func(s string) string { return prefix + s }
	ended, aborted, marked, created, due := name("ended"), name("aborted"), name("marked"), name("created"), name("due")
	must := func(changes ...store.Change) {
		for i, err := range writer.Apply(t.Context(), changes) {
			require.NoError(t, err, changes[i].Gid())
		}
	}
	must(create(ended), create(aborted), create(marked), create(due, dueAtOnce))

	before := d.held()
	d.slow(time.Hour)
	release := sync.OnceFunc(func() { d.slow(0) })
	defer release() // or Close would wait
	var tooEarly, failures sync.Map
	var calls sync.WaitGroup
	released := make(chan struct{})
	// ask makes a call until it tells of a change, which it must not before the
	// release.
	ask := func(what string, call func(ctx context.Context) (told bool, err error)) {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
			defer cancel()
			for {
				told, err := call(ctx)
				if err != nil {
					failures.Store(what, err)
					return
				}
				if told {
					select {
					case <-released:
					default:
						tooEarly.Store(what, true)
					}
					return
				}
				time.Sleep(time.Millisecond) // not as fast as it can
			}
		})
	}
	write := func(s store.Store, what string, c store.Change, also error) {
		ask(what, func(ctx context.Context) (bool, error) {
			err := s.Apply(ctx, []store.Change{c})[0]
			if also != nil && errors.Is(err, also) {
				err = nil
			}
			return true, err
		})
	}
	seen := func(gid string, changed func(store.Record) bool) {
		ask("Get of "+gid, func(ctx context.Context) (bool, error) {
			r, err := reader.Get(ctx, gid)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil
			}
			return err == nil && changed(r), err
		})
	}
	// Who comes second is refused, or who came first: neither may learn it.
	changes := map[string]func() store.Change{
		"end":    func() store.Change { return move(submitted(ended), store.StatusSucceeded) },
		"abort":  func() store.Change { return move(submitted(aborted), store.StatusAborting) },
		"mark":   func() store.Change { return stay(submitted(marked), mark(0, store.MarkSucceeded)) },
		"create": func() store.Change { return create(created) },
	}
	for what, change := range changes {
		write(writer, what, change(), refusals[what])
	}
	seen(ended, func(r store.Record) bool { return r.Status == store.StatusSucceeded })
	seen(aborted, func(r store.Record) bool { return r.Status == store.StatusAborting })
	seen(marked, func(r store.Record) bool { return r.Marks.At(0) == store.MarkSucceeded })
	seen(created, func(store.Record) bool { return true })
	ask("List", func(ctx context.Context) (bool, error) {
		found := false
		err := store.Walk(ctx, reader, store.Query{}, func(r store.Record) { found = found || r.GID == created })
		return found, err
	})
	ask("ClaimDue", func(ctx context.Context) (bool, error) {
		claimed, err := reader.ClaimDue(ctx, "claimer", long, 10)
		return len(claimed) > 0, err
	})
	for deadline := time.Now().Add(patience); d.held() == before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "nothing is synced")
	}
	time.Sleep(enough)
	for what, change := range changes {
		write(reader, what+" again", change(), refusals[what])
	}
	time.Sleep(enough)
	tooEarly.Range(func(what, _ any) bool {
		t.Errorf("%s was answered before it was on disk", what)
		return true
	})
	close(released)
	release()
	calls.Wait()
	failures.Range(func(what, err any) bool {
		t.Errorf("%s: %v", what, err)
		return true
	})
}

// refusals is what a change is answered with that another client has made.
var refusals = map[string]error{"end": store.ErrConflict, "abort": store.ErrConflict, "create": store.ErrDuplicate}

// crashes takes sagas to their ends on a slow disk, until a crash.
func crashes(d disk) {
	t := d.t
	for round := range 2 {
		j := newDiskJournal(fmt.Sprintf("crash-%d-%d-", rand.Uint32(), round))
		clients := []store.Store{d.client(), d.client()}
		d.slow(time.Duration(20+rand.N(60)) * time.Millisecond)
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		var running sync.WaitGroup
		for w := range 6 {
			running.Go(func() { j.write(ctx, clients[w%2], w) })
		}
		for w := range 4 {
			running.Go(func() { j.read(ctx, clients[w%2]) })
		}
		require.Eventually(t, j.busy, patience, time.Millisecond, "too little was written or read")
		time.Sleep(rand.N(300 * time.Millisecond)) // what is under way when it crashes differs
		j.end()
		d.crash()
		stop()
		running.Wait()
		for _, s := range clients {
			require.NoError(t, s.Close())
		}
		after := d.client()
		j.check(t, after)
		require.NoError(t, after.Close())
	}
}

// diskJournal is what clients were told of sagas: how far each had come.
type diskJournal struct {
	prefix string

	mu    sync.Mutex
	ended bool // what is told now does not count
	begun []string
	acked map[string]int
	shown map[string]int
}

func newDiskJournal(prefix string) *diskJournal {
	return &diskJournal{prefix: prefix, acked: map[string]int{}, shown: map[string]int{}}
}

// steps is the way of a saga; progress is how far along it one is.
func (j *diskJournal) steps(gid string) []store.Change {
	aborting := submitted(gid)
	aborting.Status = store.StatusAborting
	return []store.Change{
		create(gid),
		stay(submitted(gid), mark(0, store.MarkSucceeded)),
		move(submitted(gid), store.StatusAborting),
		stay(aborting, mark(1, store.MarkSucceeded)),
		move(aborting, store.StatusFailed),
	}
}

func progress(r store.Record) int {
	switch {
	case r.Status == store.StatusFailed:
		return 5
	case r.Status == store.StatusAborting && r.Marks.At(1) == store.MarkSucceeded:
		return 4
	case r.Status == store.StatusAborting:
		return 3
	case r.Marks.At(0) == store.MarkSucceeded:
		return 2
	default:
		return 1
	}
}

func (j *diskJournal) write(ctx context.Context, s store.Store, worker int) {
	for n := 0; ctx.Err() == nil; n++ {
		gid := fmt.Sprintf("%s%d-%d", j.prefix, worker, n)
		j.mu.Lock()
		j.begun = append(j.begun, gid)
		j.mu.Unlock()
		for i, change := range j.steps(gid) {
			if s.Apply(ctx, []store.Change{change})[0] != nil {
				return // it has crashed
			}
			j.note(j.acked, gid, i+1)
		}
	}
}

func (j *diskJournal) note(in map[string]int, gid string, at int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended {
		in[gid] = max(in[gid], at)
	}
}

// busy reports whether enough is going on for a crash to show something.
func (j *diskJournal) busy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.acked) >= 12 && len(j.shown) >= 12
}

// end comes before the crash: a store in this process goes on after its own.
func (j *diskJournal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
}

func (j *diskJournal) read(ctx context.Context, s store.Store) {
	for ctx.Err() == nil {
		r, err := s.Get(ctx, j.recent())
		switch {
		case err == nil:
			j.note(j.shown, r.GID, progress(r))
		case errors.Is(err, store.ErrNotFound): // it is not there yet
			time.Sleep(time.Millisecond)
		default:
			return // it has crashed
		}
	}
}

// recent is one of the sagas begun last.
func (j *diskJournal) recent() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.begun) == 0 {
		return j.prefix
	}
	return j.begun[max(0, len(j.begun)-1-rand.N(8))]
}

func (j *diskJournal) check(t *testing.T, s store.Store) {
	t.Helper()
	for _, gid := range j.begun {
		at := 0
		r, err := s.Get(t.Context(), gid)
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(t, err)
			at = progress(r)
		}
		require.GreaterOrEqual(t, at, j.acked[gid], "acknowledged, of %s", gid)
		require.GreaterOrEqual(t, at, j.shown[gid], "shown, of %s", gid)
	}
}
