package groupcommit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestApply_ContextEndsWhileWaiting_IsNeverSent(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		why := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := call(ctx, c, change("a", 1))
		stays := call(t.Context(), c, change("b", 1))
		cancel(why)
		err := <-gone
		require.ErrorIs(t, err, ErrNotSent)
		require.ErrorIs(t, err, why)
		require.Equal(t, 1, c.QueueLength())
		b.done()
		b = <-h.batches
		require.Equal(t, []string{"b1"}, b.names())
		b.done()
		require.NoError(t, <-stays)
	})
}

func TestApply_ContextEndedBefore_IsNeverQueued(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := newPartition(newHand(), DefaultConfig(), 1)
	_, err := l.enqueue(ctx, change("a", 1))
	require.ErrorIs(t, err, ErrNotSent)
	require.Zero(t, l.waiting())
}

func TestApply_ContextEndsAfterTaken_OutcomeIsUnknown(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := call(t.Context(), c, change("a", 1))
		gone := call(ctx, c, change("b", 1))
		after := call(t.Context(), c, change("c", 1))
		b.done()
		b = <-h.batches
		require.Equal(t, []string{"a1", "b1", "c1"}, b.names())
		err := <-gone // after a second, while the store is still at it
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrNotSent)
		require.NoError(t, b.ctx.Err(), "the others' batch goes on")
		pending(t, before)
		b.answer <- []error{store.ErrConflict, errors.New("for nobody"), nil}
		require.Equal(t, store.ErrConflict, <-before)
		require.NoError(t, <-after)

		// What was given up is not handed to anybody else later.
		for n := range 10 {
			next := call(t.Context(), c, change("d", n))
			(<-h.batches).done()
			require.NoError(t, <-next)
		}
	})
}

// When the answer and the end of the context are there at the same time, the
// answer is worth more.
func TestApply_AnswerIsThereWhenContextEnds_IsGiven(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := newPartition(newHand(), DefaultConfig(), 1)
	r, err := l.enqueue(ctx, change("a", 1))
	require.NoError(t, err)
	require.Len(t, l.nextBatch(nil, map[string]struct{}{}), 1)
	r.done <- store.ErrConflict
	cancel()
	require.Equal(t, store.ErrConflict, l.abandon(ctx, r))
}

func TestApply_FullQueue_MakesCallersWait(t *testing.T) {
	inBubble(t, config(1, 2, 1), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		a := call(t.Context(), c, change("a", 1))
		d := call(t.Context(), c, change("d", 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		impatient := call(ctx, c, change("x", 1))
		patient := call(t.Context(), c, change("p", 1))
		require.Equal(t, 2, c.QueueLength(), "the queue is bounded")
		err := <-impatient
		require.ErrorIs(t, err, ErrNotSent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, want := range []string{"a1", "d1", "p1"} {
			b.done()
			b = <-h.batches
			require.Equal(t, []string{want}, b.names())
		}
		b.done()
		for _, answer := range []<-chan error{a, d, patient} {
			require.NoError(t, <-answer)
		}
	})
}

func TestApply_GivingUp_MakesRoomForTheNext(t *testing.T) {
	inBubble(t, config(10, 1, 1), func(t *testing.T, c *Committer, h *hand) {
		call(t.Context(), c, change("first", 1))
		b := <-h.batches
		ctx, cancel := context.WithCancel(t.Context())
		gone := call(ctx, c, change("a", 1))
		waits := call(t.Context(), c, change("b", 1))
		cancel()
		require.ErrorIs(t, <-gone, ErrNotSent)
		synctest.Wait()
		require.Equal(t, 1, c.QueueLength())
		b.done()
		b = <-h.batches
		require.Equal(t, []string{"b1"}, b.names())
		b.done()
		require.NoError(t, <-waits)
	})
}
