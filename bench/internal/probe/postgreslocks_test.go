package probe

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watchedFor is what the looks of so long come to.
func watchedFor(duration time.Duration, waiting func(context.Context) (int, error)) (u storeUse) {
	w := watchLocks(context.Background(), waiting)
	time.Sleep(duration)
	w.end()
	w.addTo(&u)
	return u
}

func TestLockWaits_AddUpWhatEachLookStandsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := watchedFor(10*time.Second, func(context.Context) (int, error) { return 2, nil })
		require.InDelta(t, 20, *u.lockTime, 1e-9, "to the very end")
		require.Empty(t, u.failures)
		u = watchedFor(10*time.Second, func(context.Context) (int, error) { return 0, nil })
		require.Zero(t, *u.lockTime)

		// One waits for a second every two seconds, and looks take a while.
		began := time.Now()
		u = watchedFor(20*time.Second, func(context.Context) (int, error) {
			time.Sleep(30 * time.Millisecond)
			return int(time.Since(began)/time.Second) % 2, nil
		})
		require.InDelta(t, 10, *u.lockTime, 0.2)
	})
}

func TestLockWaits_SayWhyTheyAreNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := watchedFor(500*time.Millisecond, func(context.Context) (int, error) { return 1, nil })
		require.Nil(t, u.lockTime)
		require.ErrorContains(t, u.failures[0], "6 looks, one each 97ms, make no average")

		var looks int
		u = watchedFor(10*time.Second, func(context.Context) (int, error) {
			looks++
			return 1, errors.New("gone")
		})
		require.Nil(t, u.lockTime)
		require.EqualError(t, u.failures[0], "the store's waits for locks: gone")
		require.Equal(t, 1, looks)
	})
}

// The probe's role is the app's, and has no special rights.
func TestUsage_PostgresLockWaitsAreThoseOfTheApp(t *testing.T) {
	t.Parallel()
	k := startPostgres(t)
	execute(t, k.db, insert)
	execute(t, k.db, "CREATE ROLE clerk LOGIN PASSWORD '"+k.server.Password()+"'")
	execute(t, k.db, "GRANT ALL ON SCHEMA place TO clerk")
	execute(t, k.db, "GRANT ALL ON place.saga TO clerk")
	cfg := k.config()
	cfg.Store.URL = strings.Replace(k.server.URL(), "//postgres:", "//clerk:", 1)
	cfg.Store.PID = k.server.PID()

	// The average of a time in which nothing changes.
	average := func() float64 {
		s := begin(t, cfg)
		began := time.Now()
		require.Eventually(t, func() bool { return time.Since(began) > 2*time.Second }, 20*time.Second, time.Millisecond)
		return *finish(t, s).Evidence().StoreLockWaits
	}
	require.Zero(t, average())

	holder, err := k.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = holder.ExecContext(t.Context(), "UPDATE place.saga SET body = '' WHERE id = 1")
	require.NoError(t, err)
	var waiting sync.WaitGroup
	clerk := openDB(t, "pgx", cfg.Store.URL)
	waiting.Go(func() {
		_, err := clerk.ExecContext(t.Context(), "UPDATE place.saga SET body = 'x' WHERE id = 1")
		assert.NoError(t, err)
	})
	waits := func() (waits bool) {
		row := holder.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
		return row.Scan(&waits) == nil && waits
	}
	require.Eventually(t, waits, 20*time.Second, time.Millisecond)
	require.InDelta(t, 1, average(), 0.1)
	require.NoError(t, holder.Commit())
	waiting.Wait()
}
