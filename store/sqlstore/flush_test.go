package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// unflushed is a dialect that shows what is not on disk, and flushes when it is told
// to.
type unflushed struct {
	dialect
	flushes int
	answer  chan error
}

func (d *unflushed) showsUnflushed() bool { return true }

func (d *unflushed) isDeadlock(error) bool { return false }

func (d *unflushed) flush(context.Context, *sql.DB) error {
	d.flushes++
	return <-d.answer
}

// withUnflushed runs a test in a bubble, on a store that has no server.
func withUnflushed(t *testing.T, test func(t *testing.T, s *Store, d *unflushed)) {
	t.Parallel()
	real := open(t, kinds[0].config())
	synctest.Test(t, func(t *testing.T) {
		d := &unflushed{dialect: real.dialect, answer: make(chan error)}
		s := &Store{cfg: real.cfg, dialect: d, db: real.db}
		test(t, s, d)
		synctest.Wait()
	})
}

func TestAwaitFlush_IsSharedByThoseWhoCameBeforeItBegan(t *testing.T) {
	withUnflushed(t, func(t *testing.T, s *Store, d *unflushed) {
		answers := make(chan error, 21)
		ask := func() { answers <- s.awaitFlush(t.Context()) }
		go ask()
		synctest.Wait()
		require.Equal(t, 1, d.flushes)
		for range 20 { // too late for that one
			go ask()
		}
		synctest.Wait()
		require.Equal(t, 1, d.flushes)
		d.answer <- nil
		synctest.Wait()
		require.Len(t, answers, 1)
		require.Equal(t, 2, d.flushes)
		d.answer <- errors.New("no")
		synctest.Wait()
		require.Len(t, answers, 21)
		require.NoError(t, <-answers)
		for range 20 {
			require.EqualError(t, <-answers, "wait for the log: no")
		}
		require.Equal(t, 2, d.flushes)
	})
}

func TestAwaitFlush_GivenUpByOne_GoesOnForTheOthers(t *testing.T) {
	withUnflushed(t, func(t *testing.T, s *Store, d *unflushed) {
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.awaitFlush(impatient), context.DeadlineExceeded)
		answers := make(chan error, 1)
		go func() { answers <- s.awaitFlush(t.Context()) }()
		for range 2 { // the one that nobody waits for, and the next
			synctest.Wait()
			require.Empty(t, answers)
			d.answer <- nil
		}
		require.NoError(t, <-answers)
	})
}

// Who waits for a saga asks again and again; as long as nothing happens to the saga
// that costs the server no write.
func TestGet_OfASagaAsItWas_DoesNotFlush(t *testing.T) {
	forEachMySQL(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		s.dialect.(*mysqlDialect).unflushed.Store(true) // though this server does not sync
		flushes := func() int { return int(s.number(t, "SELECT COALESCE(MAX(n) + 1, 0) FROM saga_flush")) }
		get := func() {
			for range 10 {
				_, err := s.Get(t.Context(), gid(1))
				require.NoError(t, err)
			}
		}
		requireApplied(t, s, create(1))
		require.Zero(t, flushes())
		get()
		require.Equal(t, 1, flushes())
		for i, change := range []store.Change{mark(1), finish(1)} {
			requireApplied(t, s, change)
			get()
			require.Equal(t, i+2, flushes())
		}
		_, err := s.Get(t.Context(), gid(2))
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, 4, flushes(), "it may have been dropped")
		_, err = s.List(t.Context(), store.Query{})
		require.NoError(t, err)
		require.Equal(t, 5, flushes())
	})
}

// What is remembered for that has a bound.
func TestFlusher_RemembersSomeSagas(t *testing.T) {
	t.Parallel()
	var f flusher
	for n := range 10 * maxFlushed {
		r := row{GID: gid(n), Note: []byte("note")}
		f.learn(r)
		require.True(t, f.knows(r))
		require.LessOrEqual(t, len(f.flushed), maxFlushed)
	}
	last := row{GID: gid(10*maxFlushed - 1), Note: []byte("note")}
	require.True(t, f.knows(last))
	for name, change := range map[string]func(r *row){
		"status":  func(r *row) { r.Status = "F" },
		"epoch":   func(r *row) { r.Epoch++ },
		"owner":   func(r *row) { r.Owner = "other" },
		"marks":   func(r *row) { r.Marks = "y-" },
		"created": func(r *row) { r.Created++ },
		"updated": func(r *row) { r.Updated++ },
		"due":     func(r *row) { r.Due++ },
		"note":    func(r *row) { r.Note = nil },
	} {
		other := last
		change(&other)
		require.False(t, f.knows(other), name)
	}
}
