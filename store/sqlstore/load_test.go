package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// load has several workers take the same sagas through the same stages at the
// same time, in batches that overlap. Each action of a saga is marked by another
// worker, so that an update that is lost is missed at the end. A worker does what
// it has no answer for again, as a coordinator would. What they were told is
// compared with what is there.
type load struct {
	t *testing.T
	s verifiable

	sure   atomic.Bool  // nothing goes wrong that a caller may notice
	calls  atomic.Int64 // that have returned
	rounds atomic.Int64

	mu     sync.Mutex
	told   map[string]int             // by stage and saga: how often it was said to be done now
	doubts map[string]int             // how often nothing was said about it
	claims map[string]map[uint32]bool // epochs claimed, by saga
	faults []string
}

const (
	loadWorkers = 4
	roundSagas  = 24
	claimSagas  = 10 // which only ClaimDue changes
)

type verifiable interface {
	store.Store
	store.Verifier
}

func newLoad(t *testing.T, s verifiable) *load {
	l := &load{t: t, s: s, told: map[string]int{}, doubts: map[string]int{}, claims: map[string]map[uint32]bool{}}
	for n := range claimSagas {
		c := create(n)
		c.GID = claimGID(n)
		requireApplied(t, s, c)
		l.claims[c.GID] = map[uint32]bool{}
	}
	return l
}

func claimGID(n int) string { return fmt.Sprintf("claim-%d", n) }

// roundGIDs are the sagas of a round, in their order.
func roundGIDs(round int64) (gids []string) {
	for n := range roundSagas {
		gids = append(gids, fmt.Sprintf("load-%04d-%02d", round, n))
	}
	return gids
}

// stage is what all workers do to a saga.
type stage struct {
	name    string
	change  func(worker int, gid string) store.Change
	refusal error // what it is answered with when another worker has done it; nil: it may be done again
}

var stages = []stage{
	{"create", func(_ int, gid string) store.Change {
		return &store.Create{GID: gid, Body: []byte("body of " + gid), Steps: loadWorkers, Owner: "test", Due: time.Hour}
	}, store.ErrDuplicate},
	{"mark", func(worker int, gid string) store.Change {
		return &store.Transition{
			GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted,
			Marks: []store.SetMark{{Branch: store.Action(worker), Mark: store.MarkSucceeded}},
		}
	}, nil},
	{"end", func(_ int, gid string) store.Change {
		return &store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded}
	}, store.ErrConflict},
}

// runBeside takes sagas to their ends, round after round, until wrong has returned:
// what goes wrong meanwhile. It is told when it is to stop before that.
func (l *load) runBeside(wrong func(stop <-chan struct{})) {
	l.t.Helper()
	done, stop := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop)
	running.Go(func() {
		defer close(done)
		wrong(stop)
	})
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true // one more round
		default:
		}
		l.round()
		require.Empty(l.t, l.someFaults())
	}
}

func (l *load) someFaults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults[:min(5, len(l.faults))]
}

func (l *load) round() {
	gids := roundGIDs(l.rounds.Load())
	for _, stage := range stages {
		var running sync.WaitGroup
		for worker := range loadWorkers {
			running.Go(func() { l.work(stage, worker, gids) })
		}
		running.Wait()
		for _, gid := range gids {
			key := stage.name + " " + gid
			if told := l.told[key]; told+l.doubts[key] == 0 || stage.refusal != nil && told > 1 {
				l.fault("%s: said to be done %d times, in doubt %d times", key, told, l.doubts[key])
			}
		}
	}
	l.rounds.Add(1)
	for _, gid := range gids {
		r := l.get(gid)
		if r.Status != store.StatusSucceeded || r.Marks != "y-y-y-y-" || r.Epoch != 1 || string(r.Body) != "body of "+gid {
			l.fault("%s ended as %v with marks %s at epoch %d, body %q", gid, r.Status, r.Marks, r.Epoch, r.Body)
		}
	}
}

// work does a stage to all sagas, as one of the workers.
func (l *load) work(stage stage, worker int, gids []string) {
	todo := make([]string, len(gids))
	for i, n := range rand.Perm(len(gids)) {
		todo[i] = gids[n]
	}
	for deadline := time.Now().Add(patience); len(todo) > 0; {
		if time.Now().After(deadline) {
			l.fault("%s: not done within %v", stage.name, patience)
			return
		}
		n := 1 + rand.N(len(todo))
		var batch []store.Change
		for _, gid := range todo[:n] {
			batch = append(batch, stage.change(worker, gid))
		}
		errs := l.s.Apply(context.Background(), batch)
		l.calls.Add(1)
		todo = append(todo[n:], l.settle(stage, batch, errs)...)
		l.claim()
	}
}

// settle notes what was said about a batch, and returns the sagas to which it is
// to be done again.
func (l *load) settle(stage stage, batch []store.Change, errs []error) (again []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, err := range errs {
		gid := batch[i].Gid()
		key := stage.name + " " + gid
		switch {
		case err == nil:
			l.told[key]++
		case stage.refusal != nil && errors.Is(err, stage.refusal):
		case isRefusal(err) || l.sure.Load():
			l.faults = append(l.faults, fmt.Sprintf("%s: %v", key, err))
		default:
			l.doubts[key]++
			again = append(again, gid)
		}
	}
	return again
}

// isRefusal reports whether err says that a change was not, and will not be, made.
func isRefusal(err error) bool {
	for _, refusal := range []error{store.ErrConflict, store.ErrNotFound, store.ErrExists, store.ErrDuplicate, store.ErrInvalid, store.ErrClosed} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// claim takes over what is due, for no longer than it takes.
func (l *load) claim() {
	records, err := l.s.ClaimDue(context.Background(), "claimer", time.Millisecond, 1+rand.N(claimSagas))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.sure.Load() {
		l.faults = append(l.faults, "claim: "+err.Error())
	}
	for _, r := range records {
		epochs := l.claims[r.GID]
		if epochs == nil || epochs[r.Epoch] {
			l.faults = append(l.faults, fmt.Sprintf("%s claimed, twice or not being due, at epoch %d", r.GID, r.Epoch))
			continue
		}
		epochs[r.Epoch] = true
	}
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// get reads a saga, again as long as there is no answer.
func (l *load) get(gid string) store.Record {
	for deadline := time.Now().Add(patience); ; {
		r, err := l.s.Get(context.Background(), gid)
		if err == nil {
			return r
		}
		if errors.Is(err, store.ErrNotFound) || time.Now().After(deadline) {
			l.fault("%s: %v", gid, err)
			return r
		}
	}
}

// requireSound checks the whole store once all is quiet.
func (l *load) requireSound() {
	l.t.Helper()
	there := map[string]bool{}
	require.NoError(l.t, store.Walk(l.t.Context(), l.s, store.Query{Limit: 1000}, func(r store.Record) { there[r.GID] = true }))
	require.Len(l.t, there, int(l.rounds.Load())*roundSagas+claimSagas)
	for gid, epochs := range l.claims {
		r := l.get(gid)
		require.GreaterOrEqual(l.t, int(r.Epoch), len(epochs)+1, gid)
		for epoch := range epochs {
			require.LessOrEqual(l.t, epoch, r.Epoch, gid)
		}
		if l.sure.Load() {
			require.Equal(l.t, len(epochs)+1, int(r.Epoch), gid)
		}
	}
	requireVerified(l.t, l.s)
	require.Empty(l.t, l.someFaults())
}
