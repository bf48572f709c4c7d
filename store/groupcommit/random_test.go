package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/store"
)

// TestCommitter_Random plays random calls, cancellations and answers, one after
// another, and checks every batch and every caller's answer.
func TestCommitter_Random(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, playRandomly) })
}

// caller is one call of Apply that has not been answered yet.
type caller struct {
	cancel    context.CancelFunc
	cancelled bool
	answer    <-chan error
}

func playRandomly(t *rapid.T) {
	maxBatch := rapid.IntRange(1, 5).Draw(t, "max batch")
	flushers := rapid.IntRange(1, 3).Draw(t, "flushers")
	maxQueue := flushers * rapid.SampledFrom([]int{1, 2, 8, 1000}).Draw(t, "queue per flusher")
	ordered := maxQueue >= 1000 // nobody ever waits for room
	h := newHand()
	c, err := New(h, config(maxBatch, maxQueue, flushers))
	require.NoError(t, err)
	defer c.Close()
	defer close(h.over)

	var (
		callers  = map[string]*caller{} // by name
		called   = map[string]int{}     // by gid
		reached  = map[string]int{}     // by gid, the last one to reach the store
		sent     = map[string]error{}   // by name: what the store will say, or has said
		underWay []*batch
	)
	receive := func() {
		for {
			synctest.Wait()
			select {
			case b := <-h.batches:
				require.LessOrEqual(t, len(b.changes), maxBatch)
				require.NotEmpty(t, b.changes)
				size := 0
				gids := map[string]bool{}
				for _, change := range b.changes {
					gid, n := change.Gid(), int(change.(*store.Transition).Epoch)
					require.False(t, gids[gid], "%s twice in a batch", gid)
					gids[gid] = true
					size += len(change.(*store.Transition).Note)
					for _, other := range underWay {
						for _, also := range other.changes {
							require.NotEqual(t, gid, also.Gid(), "under way twice at once")
						}
					}
					if ordered {
						require.Greater(t, n, reached[gid], "%s: out of order", gid)
					}
					reached[gid] = n
					require.NotContains(t, sent, name(change), "sent twice")
					sent[name(change)] = fmt.Errorf("answer to %s", name(change))
				}
				require.True(t, size <= MaxBatchBytes || len(b.changes) == 1, "%d changes of %d bytes", len(b.changes), size)
				underWay = append(underWay, b)
				require.LessOrEqual(t, len(underWay), flushers)
			default:
				return
			}
		}
	}
	answer := func(i int) {
		b := underWay[i]
		underWay = append(underWay[:i], underWay[i+1:]...)
		errs := make([]error, len(b.changes))
		for i, change := range b.changes {
			errs[i] = sent[name(change)]
		}
		b.answer <- errs
	}
	alone := func(who string) bool {
		return slices.ContainsFunc(underWay, func(b *batch) bool { return len(b.changes) == 1 && name(b.changes[0]) == who })
	}
	collect := func() {
		for name, who := range callers {
			select {
			case err := <-who.answer:
				delete(callers, name)
				said, wasSent := sent[name]
				switch {
				case !who.cancelled || errors.Is(err, said) && wasSent:
					require.Equal(t, said, err, "%s got another's answer", name)
				case wasSent:
					require.NotErrorIs(t, err, ErrNotSent, "%s was sent", name)
				default:
					require.ErrorIs(t, err, ErrNotSent, "%s was not sent", name)
				}
			default:
				// A caller alone may be writing itself: then it is for the store to notice.
				require.True(t, !who.cancelled || alone(name), "%s does not notice that its context has ended", name)
			}
		}
	}
	step := map[string]func(*rapid.T){
		"call": func(t *rapid.T) {
			gid := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "gid")
			called[gid]++
			ctx, cancel := context.WithCancel(context.Background())
			size := rapid.SampledFrom([]int{0, 0, MaxBatchBytes / 2, MaxBatchBytes/2 + 1, MaxBatchBytes + 1}).Draw(t, "size")
			next := largeChange(gid, called[gid], size)
			callers[name(next)] = &caller{cancel: cancel, answer: call(ctx, c, next)}
		},
		"cancel": func(t *rapid.T) {
			for _, name := range slices.Sorted(maps.Keys(callers)) {
				if who := callers[name]; !who.cancelled && rapid.Bool().Draw(t, name) {
					who.cancel()
					who.cancelled = true
					return
				}
			}
		},
		"answer": func(t *rapid.T) {
			if len(underWay) > 0 {
				answer(rapid.IntRange(0, len(underWay)-1).Draw(t, "which"))
			}
		},
		"": func(t *rapid.T) { // after each
			receive()
			collect()
			require.LessOrEqual(t, c.QueueLength(), maxQueue)
		},
	}
	t.Repeat(step)

	closed := make(chan struct{})
	go func() {
		c.Close()
		close(closed)
	}()
	for receive(); len(underWay) > 0; receive() {
		answer(0)
	}
	<-closed
	synctest.Wait()
	for name, who := range callers {
		err := <-who.answer
		if said, wasSent := sent[name]; wasSent && !who.cancelled {
			require.Equal(t, said, err)
		} else if !wasSent && !who.cancelled {
			require.ErrorIs(t, err, store.ErrClosed, "%s was outside the queue", name)
		}
	}
	for _, who := range callers {
		who.cancel()
	}
}

// TestCommitter_ManyGoroutines is for the race detector: callers, some of whom
// give up, against a store that sometimes fails.
func TestCommitter_ManyGoroutines(t *testing.T) {
	t.Parallel()
	const (
		goroutines = 64
		each       = 200
	)
	var mu sync.Mutex
	reached := map[string]int{}
	to := applierFunc(func(_ context.Context, changes []store.Change) []error {
		errs := make([]error, len(changes))
		mu.Lock()
		defer mu.Unlock()
		for i, change := range changes {
			n := int(change.(*store.Transition).Epoch)
			if n <= reached[change.Gid()] || len(changes) > 16 {
				errs[i] = errors.New("out of order, or too large a batch")
				continue
			}
			reached[change.Gid()] = n
			if n%3 == 0 {
				errs[i] = fmt.Errorf("answer to %s: %w", name(change), store.ErrConflict)
			}
		}
		return errs
	})
	c, err := New(to, config(16, 32, 2))
	require.NoError(t, err)
	var all sync.WaitGroup
	failures := make(chan error, goroutines*each)
	for g := range goroutines {
		all.Go(func() {
			gid := fmt.Sprint("g", g)
			for n := 1; n <= each; n++ {
				next := change(gid, n)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				if rand.N(4) == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(context.Background(), rand.N(50*time.Microsecond))
				}
				err := c.Apply(ctx, next)
				cancel()
				mu.Lock()
				arrived := reached[gid] == n
				mu.Unlock()
				switch {
				case err == nil && arrived && n%3 != 0:
				case errors.Is(err, store.ErrConflict) && arrived && n%3 == 0 && err.Error() == fmt.Sprintf("answer to %s: %v", name(next), store.ErrConflict):
				case errors.Is(err, ErrNotSent) && !arrived:
				case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNotSent): // taken, outcome unknown
				default:
					failures <- fmt.Errorf("%s: arrived %v, answer %w", name(next), arrived, err)
				}
			}
		})
	}
	all.Wait()
	c.Close()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}
