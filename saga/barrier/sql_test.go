package barrier_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/saga/barrier"
)

func TestCallTx_LeavesTheEndToTheCaller(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		inTx := func(end func(*sql.Tx) error) {
			t.Helper()
			tx, err := a.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, action(a.gid()).CallTx(t.Context(), tx, a.dialect, a.adding(t.Context(), -1)))
			require.NoError(t, end(tx))
		}
		inTx((*sql.Tx).Rollback)
		require.Equal(t, 100, a.balance(t))
		require.Zero(t, a.marks(t, a.gid()))
		inTx((*sql.Tx).Commit)
		inTx((*sql.Tx).Commit)
		require.Equal(t, 99, a.balance(t))
		require.EqualValues(t, 2, a.began.Load())
	})
}

func TestCall_WorkThatPanics_IsRolledBack(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		require.Panics(t, func() {
			_ = action(a.gid()).Call(t.Context(), a.db, a.dialect, func(tx *sql.Tx) error {
				require.NoError(t, a.adding(t.Context(), -1)(tx))
				panic("in the middle")
			})
		})
		require.Equal(t, 100, a.balance(t))
		require.Zero(t, a.marks(t, a.gid()))
		require.Zero(t, a.db.Stats().InUse, "the connection should be back")
	})
}

func TestCall_ReturnsTheErrorOfWorkAsItIs(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		cause := errors.New("cause")
		err := action(a.gid()).Call(t.Context(), a.db, a.dialect, func(*sql.Tx) error { return cause })
		require.Same(t, cause, err)
	})
}

func TestCall_TheContextEnds_NothingIsLeft(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		ctx, cancel := context.WithCancel(t.Context())
		err := action(a.gid()).Call(ctx, a.db, a.dialect, func(tx *sql.Tx) error {
			cancel()
			return a.adding(ctx, -1)(tx)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 100, a.balance(t))
		require.Zero(t, a.marks(t, a.gid()))
	})
}

// Two calls lock two rows in opposite order, until the server picks a victim.
func TestCall_ADeadlockOfTheWork_IsTriedAgain(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		other := &sqlAccount{db: a.db, dialect: a.dialect, id: a.id + "other"}
		a.exec(t, "INSERT INTO account VALUES ('"+other.id+"', 100)")
		firstDone := []chan struct{}{make(chan struct{}), make(chan struct{})}
		errs := atOnce(2, func(i int) error {
			rows := []*sqlAccount{a, other}
			began := false
			return action(fmt.Sprintf("%s-%d", a.gid(), i)).Call(t.Context(), a.db, a.dialect, func(tx *sql.Tx) error {
				if err := rows[i].adding(t.Context(), -1)(tx); err != nil {
					return err
				}
				if !began {
					began = true
					close(firstDone[i])
					<-firstDone[1-i]
				}
				return rows[1-i].adding(t.Context(), -1)(tx)
			})
		})
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, 98, a.balance(t))
		require.Equal(t, 98, other.balance(t))
		require.Greater(t, a.began.Load()+other.began.Load(), int64(4), "there should have been a deadlock")
	})
}

func TestCall_AnyIsolation_AHundredAtOnce_AreDoneOnce(t *testing.T) {
	t.Parallel()
	isolation := mysqlIsolation(t)
	for name, how := range map[string]struct {
		dialect barrier.Dialect
		options string
	}{
		"mysql read committed":       {barrier.MySQL, isolation + "='READ-COMMITTED'"},
		"mysql serializable":         {barrier.MySQL, isolation + "='SERIALIZABLE'"},
		"mysql counts found rows":    {barrier.MySQL, "clientFoundRows=true&interpolateParams=true"},
		"postgres repeatable read":   {barrier.Postgres, "default_transaction_isolation=repeatable%20read"},
		"postgres serializable":      {barrier.Postgres, "default_transaction_isolation=serializable"},
		"postgres simple statements": {barrier.Postgres, "default_query_exec_mode=simple_protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newSQLAccount(t, how.dialect, how.options)
			errs := atOnce(100, func(int) error { return a.add(t.Context(), action(a.gid()), -7) })
			require.NoError(t, errors.Join(errs...))
			require.Equal(t, 93, a.balance(t))
			require.Equal(t, 1, a.marks(t, a.gid()))
		})
	}
}

// mysqlIsolation is the variable's name, which changed.
func mysqlIsolation(t *testing.T) string {
	t.Helper()
	db, err := openDB(barrier.MySQL, "", "")
	require.NoError(t, err)
	defer db.Close()
	var name, value string
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')").Scan(&name, &value))
	return name
}

func TestCall_UsesTheTableItIsGiven(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		b := action(a.gid())
		b.Table = "no_such_table"
		require.ErrorContains(t, a.add(t.Context(), b, -1), "no_such_table")

		const table = "barriers_of_ours"
		require.NoError(t, barrier.CreateTable(t.Context(), a.db, a.dialect, table))
		for range 2 {
			b = action(a.gid())
			b.Table = table
			require.NoError(t, a.add(t.Context(), b, -1))
		}
		require.Equal(t, 99, a.balance(t))
		require.Equal(t, 1, a.number(t, "SELECT count(*) FROM "+table+" WHERE gid = '"+a.gid()+"'"))
		require.Zero(t, a.marks(t, a.gid()))
	})
}

func TestCall_RefusesWhatIsNoTableOrDialect(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		for _, table := range []string{"x; DROP TABLE account", "a.b.c", "`x`", "1x", "x--"} {
			b := action(a.gid())
			b.Table = table
			require.ErrorContains(t, a.add(t.Context(), b, 1), "is not a valid table name")
			require.ErrorContains(t, barrier.CreateTable(t.Context(), a.db, a.dialect, table), "is not a valid table name")
		}
		require.ErrorContains(t, barrier.CreateTable(t.Context(), a.db, 0, "x"), "unknown SQL dialect 0")
		require.ErrorContains(t, action(a.gid()).Call(t.Context(), a.db, 3, a.adding(t.Context(), 1)), "unknown SQL dialect 3")
		require.Equal(t, 100, a.balance(t))
	})
}

func TestCreateTable_AtOnceAndAgain_KeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		table := a.id + ".barrier"
		create := func(int) error { return barrier.CreateTable(t.Context(), a.db, a.dialect, table) }
		require.NoError(t, errors.Join(atOnce(10, create)...))
		b := action(a.gid())
		b.Table = table
		require.NoError(t, a.add(t.Context(), b, -1))
		require.NoError(t, create(0))
		require.Equal(t, 1, a.number(t, "SELECT count(*) FROM "+table))
	})
}

// dtm's coordinator makes gids of letters of both cases.
func TestCreateTable_TellsCasesApart(t *testing.T) {
	t.Parallel()
	forEachDialect(t, func(t *testing.T, a *sqlAccount) {
		require.NoError(t, a.add(t.Context(), action(a.gid()+"x"), -1))
		require.NoError(t, a.add(t.Context(), action(a.gid()+"X"), -1))
		require.Equal(t, 98, a.balance(t))
	})
}
