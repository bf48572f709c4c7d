package groupcommit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestClose_AnswersWhatWasAccepted(t *testing.T) {
	inBubble(t, config(2, 3, 1), func(t *testing.T, c *Committer, h *hand) {
		accepted := []<-chan error{call(t.Context(), c, change("first", 1))}
		b := <-h.batches
		for n := range 3 {
			accepted = append(accepted, call(t.Context(), c, change("g", n)))
		}
		outside := call(t.Context(), c, change("outside", 1)) // the queue is full

		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		require.ErrorIs(t, c.Apply(t.Context(), change("late", 1)), store.ErrClosed)
		for _, want := range []string{"g0", "g1", "g2"} {
			select {
			case <-closed:
				t.Fatal("closed with changes in the queue")
			default:
			}
			b.done()
			b = <-h.batches
			require.Equal(t, []string{want}, b.names())
		}
		b.done()
		<-closed
		for _, answer := range accepted {
			require.NoError(t, <-answer)
		}
		require.ErrorIs(t, <-outside, store.ErrClosed)
		require.ErrorIs(t, c.Apply(t.Context(), change("late", 2)), store.ErrClosed)
		c.Close() // twice is allowed
	})
}

func TestClose_WaitsForEveryFlusher(t *testing.T) {
	inBubble(t, config(10, 10, 4), func(t *testing.T, c *Committer, h *hand) {
		var answers []<-chan error
		for n := range 20 {
			gid := fmt.Sprint("g", n)
			if c.partitionOf(gid).waiting() > 0 {
				continue // its queue is as full as it needs to be
			}
			answers = append(answers, call(t.Context(), c, change(gid, 1)))
		}
		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		for range answers {
			synctest.Wait()
			select {
			case <-closed:
				t.Fatal("closed with a flush under way")
			case b := <-h.batches:
				b.done()
			}
		}
		for _, answer := range answers {
			require.NoError(t, <-answer)
		}
		<-closed
	})
}

func TestClose_OfAnIdleCommitter_ReturnsAtOnce(t *testing.T) {
	inBubble(t, config(10, 10, 3), func(t *testing.T, c *Committer, _ *hand) {
		elapsed := stopwatch()
		c.Close()
		require.Zero(t, elapsed())
	})
}

// panicVariable makes this test binary run applyToStoreThatPanics.
const panicVariable = "SAGABENCH_GROUPCOMMIT_TEST_PANIC"

// applyToStoreThatPanics ends the process, or hangs it.
func applyToStoreThatPanics() {
	c, err := New(applierFunc(func(context.Context, []store.Change) []error { panic("the store is broken") }), DefaultConfig())
	if err == nil {
		err = c.Apply(context.Background(), change("a", 1))
	}
	fmt.Println("answered:", err)
	os.Exit(0)
}

// A store that panics may hold its locks, so there is nothing to go on with:
// the process ends, as it does for a panic anywhere else, and nobody is left
// waiting or told that all is well.
func TestApply_StoreThatPanics_EndsTheProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), panicVariable+"=1")
	said, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "it hangs: %s", said)
	require.Error(t, err, "it went on: %s", said)
	require.Contains(t, string(said), "panic: the store is broken")
	require.NotContains(t, string(said), "answered")
}
