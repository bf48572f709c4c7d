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

// journal records the progress of sagas as clients have seen it.
type journal struct {
	prefix string

	mu    sync.Mutex
	ended bool // nothing more is recorded
	begun []string
	acked map[string]int // progress by gid
	shown map[string]int
}

func newJournal(prefix string) *journal {
	return &journal{prefix: prefix, acked: map[string]int{}, shown: map[string]int{}}
}

// steps returns the changes of a saga. Its progress is the number of them that were
// made.
func steps(gid string) []store.Change {
	return []store.Change{
		create(gid),
		move(gid, store.StatusSubmitted, store.StatusSubmitted, 0),
		move(gid, store.StatusSubmitted, store.StatusAborting),
		move(gid, store.StatusAborting, store.StatusAborting, 1),
		move(gid, store.StatusAborting, store.StatusFailed),
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

func (j *journal) write(ctx context.Context, s store.Store, worker int) {
	for n := 0; ctx.Err() == nil; n++ {
		gid := fmt.Sprintf("%s%d-%d", j.prefix, worker, n)
		j.mu.Lock()
		j.begun = append(j.begun, gid)
		j.mu.Unlock()
		for i, change := range steps(gid) {
			if s.Apply(ctx, []store.Change{change})[0] != nil {
				return // the server has crashed
			}
			j.record(j.acked, gid, i+1)
		}
	}
}

func (j *journal) record(in map[string]int, gid string, at int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended {
		in[gid] = max(in[gid], at)
	}
}

// busy reports whether enough sagas are under way for a crash to be a test.
func (j *journal) busy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.acked) >= 12 && len(j.shown) >= 12
}

// end stops recording. Call it before the crash: a store in this process may still
// answer while it crashes.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
}

func (j *journal) read(ctx context.Context, s store.Store) {
	for ctx.Err() == nil {
		r, err := s.Get(ctx, j.recent())
		switch {
		case err == nil:
			j.record(j.shown, r.GID, progress(r))
		case errors.Is(err, store.ErrNotFound): // not created yet
			time.Sleep(time.Millisecond)
		default:
			return // the server has crashed
		}
	}
}

// recent returns one of the sagas that were begun last.
func (j *journal) recent() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.begun) == 0 {
		return j.prefix
	}
	return j.begun[max(0, len(j.begun)-1-rand.N(8))]
}

func (j *journal) check(t *testing.T, s store.Store) {
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
