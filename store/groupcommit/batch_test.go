package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestApply_Alone_IsSentAtOnce(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		elapsed := stopwatch()
		answer := call(t.Context(), c, change("a", 1))
		b := <-h.batches
		require.Zero(t, elapsed(), "no timer is in the way")
		require.Zero(t, c.QueueLength())
		pending(t, answer)
		b.done()
		require.NoError(t, <-answer)
	})
}

func TestApply_WhileAFlushIsUnderWay_FillsTheNextBatch(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		first := call(t.Context(), c, change("a", 1))
		b := <-h.batches
		var later []<-chan error
		for _, gid := range []string{"b", "c", "d"} {
			later = append(later, call(t.Context(), c, change(gid, 1)))
		}
		require.Equal(t, 3, c.QueueLength())
		b.done()
		require.NoError(t, <-first)
		b = <-h.batches
		require.Equal(t, []string{"b1", "c1", "d1"}, b.names())
		require.Zero(t, c.QueueLength())
		b.done()
		for _, answer := range later {
			require.NoError(t, <-answer)
		}
	})
}

func TestApply_MaxBatch_IsNeverExceeded(t *testing.T) {
	inBubble(t, config(2, 100, 1), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		for _, gid := range []string{"a", "b", "c", "d", "e"} {
			call(t.Context(), c, change(gid, 1))
		}
		for _, want := range [][]string{{"a1", "b1"}, {"c1", "d1"}, {"e1"}} {
			b.done()
			b = <-h.batches
			require.Equal(t, want, b.names())
		}
		b.done()
	})
}

func TestApply_MaxBatchBytes_IsExceededByOneAlone(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		for _, next := range []store.Change{
			largeChange("a", 1, MaxBatchBytes-1), largeChange("b", 1, 1), // together just what is allowed
			largeChange("c", 1, MaxBatchBytes/2), change("d", 1), change("c", 2), largeChange("e", 1, MaxBatchBytes/2+1),
			change("c", 3), largeChange("f", 1, MaxBatchBytes+1), change("g", 1),
		} {
			call(t.Context(), c, next)
		}
		for _, want := range [][]string{{"a1", "b1"}, {"c1", "d1"}, {"c2", "e1"}, {"c3"}, {"f1"}, {"g1"}} {
			b.done()
			b = <-h.batches
			require.Equal(t, want, b.names())
		}
		b.done()
	})
}

func TestApply_MaxBatchBytes_CountsBodies(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		for _, gid := range []string{"a", "b", "c", "d", "e"} {
			call(t.Context(), c, &store.Create{GID: gid, Body: []byte(large[:store.MaxBodyBytes])})
		}
		for _, want := range []int{2, 2, 1} {
			b.done()
			b = <-h.batches
			require.Len(t, b.changes, want)
		}
		b.done()
	})
}

func TestApply_SameGid_GoesInLaterBatchesInOrder(t *testing.T) {
	inBubble(t, config(3, 100, 1), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		for _, next := range []store.Change{
			change("a", 1), change("a", 2), change("b", 1), change("a", 3), change("c", 1), change("d", 1), change("b", 2),
		} {
			call(t.Context(), c, next)
		}
		for _, want := range [][]string{{"a1", "b1", "c1"}, {"a2", "d1", "b2"}, {"a3"}} {
			b.done()
			b = <-h.batches
			require.Equal(t, want, b.names())
		}
		b.done()
	})
}

func TestApply_Errors_GoToTheirCallers(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		well := call(t.Context(), c, change("a", 1))
		conflict := call(t.Context(), c, change("b", 1))
		alsoWell := call(t.Context(), c, change("c", 1))
		missing := call(t.Context(), c, change("d", 1))
		b.done()
		b = <-h.batches
		b.answer <- []error{nil, store.ErrConflict, nil, store.ErrNotFound}
		require.NoError(t, <-well)
		require.Equal(t, store.ErrConflict, <-conflict)
		require.NoError(t, <-alsoWell)
		require.Equal(t, store.ErrNotFound, <-missing)
	})
}

func TestApply_StoreIsSlowerThanTimeout_ContextEnds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Timeout = 7 * time.Second
	inBubble(t, cfg, func(t *testing.T, c *Committer, h *hand) {
		elapsed := stopwatch()
		answer := call(context.Background(), c, change("a", 1))
		b := <-h.batches
		<-b.ctx.Done()
		require.Equal(t, cfg.Timeout, elapsed())
		pending(t, answer) // until the store has answered
		b.answer <- []error{b.ctx.Err()}
		require.ErrorIs(t, <-answer, context.DeadlineExceeded)

		next := call(t.Context(), c, change("a", 2))
		b = <-h.batches
		require.NoError(t, b.ctx.Err(), "the next batch has a deadline of its own")
		b.done()
		require.NoError(t, <-next)
	})
}

// A store that answers for more or fewer changes than it was given has said
// nothing about any of them.
func TestApply_WrongNumberOfAnswers_IsSuccessForNobody(t *testing.T) {
	for name, answer := range map[string][]error{
		"none":    nil,
		"one":     {nil},
		"another": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
				call(t.Context(), c, change("first", 1))
				b := <-h.batches
				callers := []<-chan error{call(t.Context(), c, change("a", 1)), call(t.Context(), c, change("b", 1))}
				b.done()
				b = <-h.batches
				b.answer <- answer
				for _, caller := range callers {
					err := <-caller
					require.Error(t, err)
					require.NotErrorIs(t, err, ErrNotSent)
				}

				next := call(t.Context(), c, change("a", 2))
				(<-h.batches).done()
				require.NoError(t, <-next, "the next batch is not affected")
			})
		})
	}
}

func TestApply_SeveralFlushers_WorkSideBySide(t *testing.T) {
	inBubble(t, config(100, 100, 4), func(t *testing.T, c *Committer, h *hand) {
		// One gid per partition.
		partitions := map[*partition]string{}
		for i := 0; len(partitions) < 4; i++ {
			gid := fmt.Sprint("g", i)
			partitions[c.partitionOf(gid)] = gid
		}
		var callers []<-chan error
		var batches []*batch
		for _, gid := range partitions {
			callers = append(callers, call(t.Context(), c, change(gid, 1)))
			batches = append(batches, <-h.batches)
		}
		// Each partition is under way: a second change of a gid waits for its own.
		again := call(t.Context(), c, change(partitions[c.partitions[2]], 2))
		require.Equal(t, 1, c.QueueLength())
		for _, b := range batches {
			require.Len(t, b.changes, 1)
			b.done()
		}
		for _, caller := range callers {
			require.NoError(t, <-caller)
		}
		(<-h.batches).done()
		require.NoError(t, <-again)
	})
}

// partitioned is a hand over two servers: gids from n on are on the second.
type partitioned struct{ *hand }

func (partitioned) Partitions() int { return 2 }

func (partitioned) PartitionOf(gid string) int {
	if gid < "n" {
		return 0
	}
	return 1
}

func TestApply_PartitionedStore_MakesABatchForEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		c, err := New(partitioned{h}, DefaultConfig())
		require.NoError(t, err)
		defer c.Close()
		defer close(h.over)
		call(t.Context(), c, change("a", 1))
		slow := <-h.batches
		for _, gid := range []string{"b", "x", "c"} {
			call(t.Context(), c, change(gid, 1))
		}
		other := <-h.batches
		require.Equal(t, []string{"x1"}, other.names())
		call(t.Context(), c, change("y", 1))
		other.done()
		(<-h.batches).done()
		slow.done()
		require.Equal(t, []string{"b1", "c1"}, (<-h.batches).names())
	})
}

func TestObserve_SeesEveryBatch(t *testing.T) {
	type seen struct {
		changes int
		took    time.Duration
	}
	var observed []seen
	cfg := DefaultConfig()
	cfg.Observe = func(changes int, took time.Duration) { observed = append(observed, seen{changes, took}) }
	inBubble(t, cfg, func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("a", 1))
		b := <-h.batches
		call(t.Context(), c, change("b", 1))
		call(t.Context(), c, change("c", 1))
		time.Sleep(3 * time.Second) // of the bubble's time
		b.done()
		b = <-h.batches
		time.Sleep(time.Second)
		b.answer <- []error{errors.New("no"), nil}
		synctest.Wait()
		require.Equal(t, []seen{{1, 3 * time.Second}, {2, time.Second}}, observed)
	})
}

func TestNew_InvalidConfig_IsRefused(t *testing.T) {
	t.Parallel()
	for field, edit := range map[string]func(*Config){
		"max batch": func(c *Config) { c.MaxBatch = 0 },
		"max queue": func(c *Config) { c.MaxQueue = -1 },
		"flushers":  func(c *Config) { c.Flushers = 0 },
		"timeout":   func(c *Config) { c.Timeout = 0 },
	} {
		cfg := DefaultConfig()
		edit(&cfg)
		_, err := New(newHand(), cfg)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, field)
	}
}
