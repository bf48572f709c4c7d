package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// ledger is what a client knows, outside the store: how far each of its sagas
// was acknowledged to have come, and how far it may have come.
type ledger struct {
	mu    sync.Mutex
	acked map[string]stage
	tried map[string]stage
	onAck func(gid string, at stage)
}

func newLedger() *ledger {
	return &ledger{acked: map[string]stage{}, tried: map[string]stage{}, onAck: func(string, stage) {}}
}

// run takes sagas through their stages until a batch is refused or the rounds
// are done, and returns what it was refused with. Every batch holds changes of
// all three kinds. One saga in seven is left unfinished.
func (l *ledger) run(ctx context.Context, s store.Store, worker string, rounds int) error {
	const perRound = 4
	for round := range rounds {
		var changes []store.Change
		var to []stage
		for i := max(0, round-2) * perRound; i < (round+1)*perRound; i++ {
			at := created + stage(round-i/perRound)
			if at == ended && i%7 == 0 {
				continue
			}
			changes = append(changes, advance(fmt.Sprintf("%s-%d", worker, i), at))
			to = append(to, at)
		}
		l.note(l.tried, changes, to)
		errs := s.Apply(ctx, changes)
		if err := errors.Join(errs...); err != nil {
			return errs[0]
		}
		l.note(l.acked, changes, to)
		for i, c := range changes {
			l.onAck(c.Gid(), to[i])
		}
	}
	return nil
}

func (l *ledger) note(in map[string]stage, changes []store.Change, to []stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range changes {
		in[c.Gid()] = to[i]
	}
}

// advance is the change that takes a saga to a stage.
func advance(gid string, to stage) store.Change {
	t := &store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted}
	switch to {
	case created:
		return &store.Create{GID: gid, Body: bodyFor(gid), Steps: 2, Owner: "a", Due: time.Hour}
	case marked:
		t.Marks = []store.SetMark{{Branch: store.Action(0), Mark: store.MarkSucceeded}}
	case ended:
		t.To = store.StatusSucceeded
		t.Marks = []store.SetMark{{Branch: store.Action(1), Mark: store.MarkSucceeded}}
	}
	return t
}

// bodyFor is the body of a saga. Those whose gid ends in 3 are too long to be
// part of the record.
func bodyFor(gid string) []byte {
	if strings.HasSuffix(gid, "3") {
		return []byte(strings.Repeat(gid, maxInlineBody))
	}
	return []byte(strings.Repeat(gid, 30))
}

// check finds every acknowledged saga at least as far as it was acknowledged,
// none further than it can be, and the store's own bookkeeping in order.
func (l *ledger) check(t *testing.T, s *Store) {
	t.Helper()
	for gid, tried := range l.tried {
		found := stageOf(t, s, gid)
		if found < l.acked[gid] || found > tried {
			t.Errorf("%s is at stage %d, was acknowledged at %d and tried at %d", gid, found, l.acked[gid], tried)
		}
	}
	verify(t, s)
}

func stageOf(t *testing.T, s *Store, gid string) stage {
	t.Helper()
	r, err := s.Get(t.Context(), gid)
	if errors.Is(err, store.ErrNotFound) {
		return none
	}
	require.NoError(t, err)
	require.Equal(t, string(bodyFor(gid)), string(r.Body), "body of %s", gid)
	switch {
	case r.Status == store.StatusSucceeded:
		return ended
	case r.Marks.At(store.Action(0)) == store.MarkSucceeded:
		return marked
	default:
		return created
	}
}

func verify(t *testing.T, s *Store) {
	t.Helper()
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}
