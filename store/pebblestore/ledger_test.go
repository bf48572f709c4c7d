package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// stage is how far a saga of a ledger has come.
type stage int

const (
	none stage = iota
	created
	marked
	ended
)

// ledger is what a client knows: how far each of its sagas was acknowledged to
// have come, and how far it may have come. It is kept outside the store.
type ledger struct {
	mu    sync.Mutex
	acked map[string]stage
	tried map[string]stage
}

func newLedger() *ledger {
	return &ledger{acked: map[string]stage{}, tried: map[string]stage{}}
}

// ledgerBody is the body of a saga; every fifth is too long to be inline.
func ledgerBody(i int) []byte {
	size := 200
	if i%5 == 0 {
		size = 2 * maxInlineBody
	}
	return fmt.Appendf(nil, "%0*d", size, i)
}

// advance is the change that takes saga i of one worker to a stage.
func advance(worker string, i int, to stage) store.Change {
	gid := fmt.Sprintf("%s-%d", worker, i)
	t := &store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted}
	switch to {
	case created:
		return &store.Create{GID: gid, Body: ledgerBody(i), Steps: 2, Owner: "a", Due: time.Hour}
	case marked:
		t.Marks = []store.SetMark{{Branch: store.Action(0), Mark: store.MarkSucceeded}}
	case ended:
		t.To = store.StatusSucceeded
		t.Marks = []store.SetMark{{Branch: store.Action(1), Mark: store.MarkSucceeded}}
	}
	return t
}

// run takes sagas through their stages, in batches that hold all three kinds
// of change, until a batch is refused or rounds are done. One saga in seven
// stays unfinished. It returns the store's first error.
func (l *ledger) run(s store.Store, worker string, rounds int) error {
	for round := range rounds {
		var changes []store.Change
		var to []stage
		for back, st := range []stage{created, marked, ended} {
			for i := (round - back) * 4; i >= 0 && i < (round-back+1)*4; i++ {
				if st == ended && i%7 == 0 {
					continue
				}
				changes = append(changes, advance(worker, i, st))
				to = append(to, st)
			}
		}
		l.note(l.tried, changes, to, nil)
		errs := s.Apply(context.Background(), changes)
		l.note(l.acked, changes, to, errs)
		if err := errors.Join(errs...); err != nil {
			return errs[0]
		}
	}
	return nil
}

func (l *ledger) note(in map[string]stage, changes []store.Change, to []stage, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range changes {
		if errs == nil || errs[i] == nil {
			in[c.Gid()] = to[i]
		}
	}
}

// check finds every acknowledged saga at least as far as it was acknowledged,
// no saga further than it may be, and the store's own bookkeeping in order.
func (l *ledger) check(t *testing.T, s *Store) {
	t.Helper()
	for gid, tried := range l.tried {
		r, err := s.Get(t.Context(), gid)
		found := none
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			require.NoError(t, err, "get %s", gid)
		case r.Status == store.StatusSucceeded:
			found = ended
		case r.Marks.At(store.Action(0)) == store.MarkSucceeded:
			found = marked
		default:
			found = created
		}
		require.GreaterOrEqual(t, found, l.acked[gid], "%s was acknowledged and is lost", gid)
		require.LessOrEqual(t, found, tried, "%s is further than anybody took it", gid)
		if found != none {
			var worker string
			var i int
			_, err := fmt.Sscanf(gid, "%1s-%d", &worker, &i)
			require.NoError(t, err)
			require.Equal(t, string(ledgerBody(i)), string(r.Body), "body of %s", gid)
		}
	}
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}
