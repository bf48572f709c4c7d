// Package disktest tests that a store of durability class D3 shows nobody a change
// that a crash of its server could undo. It needs a server whose syncs it can delay.
package disktest

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

// Server is a store's server. A *lab.Server that was started with SlowSync is one.
type Server interface {
	// SlowSync makes every sync take d longer, including those that have begun.
	SlowSync(d time.Duration) error

	// DelayedSyncs returns the number of syncs that SlowSync has delayed so far.
	DelayedSyncs() (int64, error)

	// Kill ends the server as a crash does. Restart starts it again.
	Kill() error
	Restart(ctx context.Context) error
}

// Run tests the store on server. Each call of open returns another client of it,
// which Run closes.
func Run(t *testing.T, server Server, open func(t testing.TB) store.Store) {
	f := fixture{server, open}
	t.Run("Readers_WaitForTheDisk", f.readersWait)
	t.Run("Crash_UndoesNothingThatWasShown", f.crashUndoesNothing)
}

// patience is how long a test waits for something that must happen.
const patience = time.Minute

type fixture struct {
	server Server
	open   func(t testing.TB) store.Store
}

func (f fixture) client(t *testing.T) store.Store {
	t.Helper()
	s := f.open(t)
	found, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, found.Durability, store.D3)
	return s
}

func (f fixture) heldSyncs(t *testing.T) int64 {
	t.Helper()
	n, err := f.server.DelayedSyncs()
	require.NoError(t, err)
	return n
}

// crash kills the server and starts it again with a fast disk.
func (f fixture) crash(t *testing.T) {
	t.Helper()
	require.NoError(t, f.server.Kill())
	require.NoError(t, f.server.SlowSync(0))
	require.NoError(t, f.server.Restart(context.WithoutCancel(t.Context())))
}

// readersWait holds all syncs, changes sagas, and lets another client read them and
// make the same changes. No call may return what it depends on before the sync.
func (f fixture) readersWait(t *testing.T) {
	const enough = 200 * time.Millisecond // for an answer that does not wait
	writer, reader := f.client(t), f.client(t)
	defer writer.Close()
	defer reader.Close()
	prefix := fmt.Sprintf("wait-%d-", rand.Uint32())
	ended, aborted, marked, created := prefix+"ended", prefix+"aborted", prefix+"marked", prefix+"created"
	due := create(prefix + "due")
	due.Due = 0
	for _, err := range writer.Apply(t.Context(), []store.Change{create(ended), create(aborted), create(marked), due}) {
		require.NoError(t, err)
	}

	before := f.heldSyncs(t)
	require.NoError(t, f.server.SlowSync(time.Hour))
	release := sync.OnceFunc(func() { require.NoError(t, f.server.SlowSync(0)) })
	defer release() // or Close would wait
	c := calls{t: t, released: make(chan struct{})}
	// Who comes second is refused, or who came first: neither may learn it.
	changes := []struct {
		name    string
		change  store.Change
		refusal error // of the second
	}{
		{"end", move(ended, store.StatusSubmitted, store.StatusSucceeded), store.ErrConflict},
		{"abort", move(aborted, store.StatusSubmitted, store.StatusAborting), store.ErrConflict},
		{"mark", move(marked, store.StatusSubmitted, store.StatusSubmitted, 0), nil},
		{"create", create(created), store.ErrDuplicate},
	}
	apply := func(s store.Store, name string) {
		for _, w := range changes {
			c.repeat(name+w.name, func(ctx context.Context) (bool, error) {
				err := s.Apply(ctx, []store.Change{w.change})[0]
				if w.refusal != nil && errors.Is(err, w.refusal) {
					err = nil
				}
				return true, err
			})
		}
	}
	apply(writer, "")
	for gid, changed := range map[string]func(store.Record) bool{
		ended:   func(r store.Record) bool { return r.Status == store.StatusSucceeded },
		aborted: func(r store.Record) bool { return r.Status == store.StatusAborting },
		marked:  func(r store.Record) bool { return r.Marks.At(0) == store.MarkSucceeded },
		created: func(store.Record) bool { return true },
	} {
		c.repeat("Get of "+gid, func(ctx context.Context) (bool, error) {
			r, err := reader.Get(ctx, gid)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil
			}
			return err == nil && changed(r), err
		})
	}
	c.repeat("List", func(ctx context.Context) (found bool, err error) {
		err = store.Walk(ctx, reader, store.Query{}, func(r store.Record) { found = found || r.GID == created })
		return found, err
	})
	c.repeat("ClaimDue", func(ctx context.Context) (bool, error) {
		claimed, err := reader.ClaimDue(ctx, "claimer", time.Hour, 10)
		return len(claimed) > 0, err
	})
	for deadline := time.Now().Add(patience); f.heldSyncs(t) == before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "nothing is synced")
	}
	time.Sleep(enough)
	apply(reader, "second ")
	time.Sleep(enough)
	close(c.released)
	release()
	c.running.Wait()
}

// calls are under way while the disk is held.
type calls struct {
	t        *testing.T
	running  sync.WaitGroup
	released chan struct{} // closed before the disk is released
}

// repeat makes a call until it shows a change. That must not be before the release.
func (c *calls) repeat(name string, call func(ctx context.Context) (shown bool, err error)) {
	c.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), patience)
		defer cancel()
		for shown := false; !shown; time.Sleep(time.Millisecond) {
			var err error
			if shown, err = call(ctx); err != nil {
				c.t.Errorf("%s: %v", name, err)
				return
			}
		}
		select {
		case <-c.released:
		default:
			c.t.Errorf("%s was answered before it was on disk", name)
		}
	})
}

// crashUndoesNothing runs sagas on a slow disk until the server crashes.
func (f fixture) crashUndoesNothing(t *testing.T) {
	for round := range 2 {
		j := newJournal(fmt.Sprintf("crash-%d-%d-", rand.Uint32(), round))
		clients := []store.Store{f.client(t), f.client(t)}
		require.NoError(t, f.server.SlowSync(time.Duration(20+rand.N(60))*time.Millisecond))
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		var running sync.WaitGroup
		for w := range 6 {
			running.Go(func() { j.write(ctx, clients[w%2], w) })
		}
		for w := range 4 {
			running.Go(func() { j.read(ctx, clients[w%2]) })
		}
		require.Eventually(t, j.busy, patience, time.Millisecond, "too little was written or read")
		time.Sleep(rand.N(300 * time.Millisecond)) // a crash finds something else under way each time
		j.end()
		f.crash(t)
		stop()
		running.Wait()
		for _, s := range clients {
			require.NoError(t, s.Close())
		}
		after := f.client(t)
		j.check(t, after)
		require.NoError(t, after.Close())
	}
}

func create(gid string) *store.Create {
	return &store.Create{GID: gid, Body: []byte("body of " + gid), Steps: 2, Owner: "first", Due: time.Hour}
}

func move(gid string, from, to store.Status, succeeded ...store.Branch) *store.Transition {
	t := &store.Transition{GID: gid, Epoch: 1, From: from, To: to}
	for _, b := range succeeded {
		t.Marks = append(t.Marks, store.SetMark{Branch: b, Mark: store.MarkSucceeded})
	}
	return t
}
