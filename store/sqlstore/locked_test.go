package sqlstore

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// Somebody, an administrator or a host that has vanished, holds a few rows: one
// locked, one inserted, one deleted, none of it committed. Only the changes of
// those sagas fail, and the batches that hold them wait once, not each time.
func TestApply_OnLockedRows_FailsOnlyTheirChanges(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const locked, inserted, deleted, free = 1, 2, 3, 4
		const rounds = 10
		cfg := k.config()
		cfg.Lease = 10 * time.Minute // the server ends no session that holds the rows
		s, other := open(t, cfg), open(t, cfg)
		requireApplied(t, s, create(locked), create(deleted), create(free))
		tx := other.begin(t)
		defer tx.Rollback()
		other.lockRow(t, tx, locked)
		require.NoError(t, other.create(t.Context(), tx, chunk{creates: []*store.Create{create(inserted)}}))
		require.NoError(t, other.exec(t.Context(), tx, "DELETE FROM saga WHERE gid = ?", gid(deleted)))

		s.stopSweeping() // it asks the dialect, too
		s.sweeping.Wait()
		waiting := &waits{dialect: s.dialect}
		s.dialect = waiting
		stale := finish(locked) // what its row does not match may be read without the lock
		stale.Epoch = 7
		for round := range rounds {
			first := 100 + 10*round
			batch := []store.Change{create(inserted), create(first), mark(locked), create(deleted), mark(free), create(first + 1)}
			if round%2 == 1 {
				batch[2] = stale
			}
			errs := s.Apply(t.Context(), batch)
			for i, err := range errs {
				if i == 0 || i == 2 || i == 3 {
					require.Error(t, err, "change %d", i)
					require.False(t, isRefusal(err), "change %d: %v", i, err)
					require.ErrorContains(t, err, "another transaction has locked it")
				} else {
					require.NoError(t, err, "change %d", i)
				}
			}
			require.Equal(t, 1, stageOf(t, s, first+1))
		}
		require.EqualValues(t, 1, waiting.n.Load(), "only the first waits")

		require.NoError(t, tx.Rollback())
		requireApplied(t, s, create(inserted), mark(locked))
		require.ErrorIs(t, s.Apply(t.Context(), []store.Change{create(deleted)})[0], store.ErrDuplicate)
	})
}

// waits counts the transactions that wait for locks.
type waits struct {
	dialect
	n atomic.Int64
}

func (w *waits) apply(ctx context.Context, db *sql.DB, c chunk, retention int64, noWait bool) (rest chunk, err error) {
	if !noWait {
		w.n.Add(1)
	}
	return w.dialect.apply(ctx, db, c, retention, noWait)
}

// A lock that is held for a moment is waited for.
func TestApply_OnARowThatIsSoonFree_Waits(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		requireApplied(t, s, create(1), create(2))
		tx := s.begin(t)
		require.NoError(t, s.exec(t.Context(), tx, "UPDATE saga SET owner = 'other' WHERE gid = ?", gid(2)))
		freed := time.AfterFunc(lockWait/20, func() { tx.Rollback() })
		defer freed.Stop()
		requireApplied(t, s, mark(1), mark(2))
	})
}

// A batch that is nothing but two transitions that do the same is one statement.
// It is a transaction for all that: when one of them is refused, only the other
// is written.
func TestApply_TwoEqual_OneRefused(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		requireApplied(t, s, create(1), create(2))
		requireApplied(t, s, finish(1))
		errs := s.Apply(t.Context(), []store.Change{finish(1), finish(2)})
		require.ErrorIs(t, errs[0], store.ErrConflict)
		require.NoError(t, errs[1])
		require.Equal(t, []int{3, 3}, []int{stageOf(t, s, 1), stageOf(t, s, 2)})
	})
}

// A finished saga that somebody has locked does not keep the others that are past
// their retention.
func TestSweep_OnALockedRow_DropsTheOthers(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		cfg.Retention = time.Second
		holder := open(t, cfg)
		requireApplied(t, holder, create(1), create(2), create(3))
		requireApplied(t, holder, finish(1), finish(2), finish(3))
		tx := holder.begin(t)
		defer tx.Rollback()
		holder.lockRow(t, tx, 1)
		require.Eventually(t, func() bool {
			return holder.number(t, "SELECT COUNT(*) FROM saga") == 1
		}, patience, 10*time.Millisecond)
	})
}

// A caller may recover the panic, as an HTTP server does.
func TestTransact_ThatPanics_LeavesNoLock(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s, other := open(t, cfg), open(t, cfg)
		requireApplied(t, s, create(1))
		require.Panics(t, func() {
			_ = s.transact(t.Context(), func(tx sqlconn.Session) error {
				s.lockRow(t, tx, 1)
				panic("a fault of ours")
			})
		})
		requireApplied(t, other, mark(1))
	})
}
