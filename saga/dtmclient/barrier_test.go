package dtmclient

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dtm-labs/client/dtmcli"
	redisv8 "github.com/go-redis/redis/v8"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/saga/barrier"
)

// vault is a balance that two kinds of participant share: those with our barrier
// and those with dtm's.
type vault struct {
	ours, dtms func(ctx context.Context, gid, op string, amount int) error
	balance    func(t *testing.T) int // 100 at first
}

// sqlVault is one in a database, with its marks in table; empty: the default of
// both.
func sqlVault(t *testing.T, driver string, db *sql.DB, table string) vault {
	t.Helper()
	dialect, dbType := barrier.MySQL, dtmcli.DBTypeMysql
	if driver == "pgx" {
		dialect, dbType = barrier.Postgres, dtmcli.DBTypePostgres
	}
	run(t, db, "CREATE TABLE vault (balance int)", "INSERT INTO vault VALUES (100)")
	adding := func(amount int) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			_, err := tx.Exec(fmt.Sprintf("UPDATE vault SET balance = balance + %d", amount))
			return err
		}
	}
	return vault{
		ours: func(ctx context.Context, gid, op string, amount int) error {
			b := &barrier.Barrier{TransType: "saga", GID: gid, BranchID: "01", Op: op, Table: table}
			return b.Call(ctx, db, dialect, adding(amount))
		},
		dtms: func(_ context.Context, gid, op string, amount int) error {
			b, err := dtmcli.BarrierFrom("saga", gid, "01", op)
			if err != nil {
				return err
			}
			b.DBType, b.BarrierTableName = dbType, table
			return b.CallWithDB(db, adding(amount))
		},
		balance: func(t *testing.T) (n int) {
			t.Helper()
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT balance FROM vault").Scan(&n))
			return n
		},
	}
}

func redisVault(t *testing.T) vault {
	t.Helper()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	v9 := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	t.Cleanup(func() { v9.Close() })
	v8 := redisv8.NewClient(&redisv8.Options{Addr: server.Addr(), Password: server.Password()})
	t.Cleanup(func() { v8.Close() })
	const key = "vault"
	require.NoError(t, v9.Set(t.Context(), key, 100, 0).Err())
	return vault{
		ours: func(ctx context.Context, gid, op string, amount int) error {
			b := &barrier.Barrier{TransType: "saga", GID: gid, BranchID: "01", Op: op}
			return b.AdjustRedis(ctx, v9, time.Hour, key, int64(amount))
		},
		dtms: func(_ context.Context, gid, op string, amount int) error {
			b, err := dtmcli.BarrierFrom("saga", gid, "01", op)
			if err != nil {
				return err
			}
			return b.RedisCheckAdjustAmount(v8, key, amount, 3600)
		},
		balance: func(t *testing.T) int {
			t.Helper()
			n, err := v9.Get(t.Context(), key).Int()
			require.NoError(t, err)
			return n
		},
	}
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func openDB(t *testing.T, driver string, server *lab.Server) *sql.DB {
	t.Helper()
	admin, err := sql.Open(driver, server.DSN(""))
	require.NoError(t, err)
	defer admin.Close()
	run(t, admin, "CREATE DATABASE vaults")
	db, err := sql.Open(driver, server.DSN("vaults"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// Tables of the shape that those have which dtm's users have: columns may be
// null, and PostgreSQL fills in no times.
const (
	theirMySQL = `CREATE TABLE theirs.barrier (
		id bigint AUTO_INCREMENT PRIMARY KEY,
		trans_type varchar(45) DEFAULT '', gid varchar(128) DEFAULT '', branch_id varchar(128) DEFAULT '',
		op varchar(45) DEFAULT '', barrier_id varchar(45) DEFAULT '', reason varchar(45) DEFAULT '',
		create_time datetime DEFAULT now(), update_time datetime DEFAULT now(),
		UNIQUE KEY (gid, branch_id, op, barrier_id)
	) ENGINE=InnoDB CHARSET=utf8mb4`
	theirPostgres = `CREATE TABLE theirs.barrier (
		id bigserial PRIMARY KEY,
		trans_type varchar(45) DEFAULT '', gid varchar(128) DEFAULT '', branch_id varchar(128) DEFAULT '',
		op varchar(45) DEFAULT '', barrier_id varchar(45) DEFAULT '', reason varchar(45) DEFAULT '',
		create_time timestamptz(0), update_time timestamptz(0),
		CONSTRAINT uniq_barrier UNIQUE (gid, branch_id, op, barrier_id)
	)`
)

func TestBarrier_IsSharedWithDtm_OnMySQL(t *testing.T) {
	t.Parallel()
	db := openDB(t, "mysql", labtest.Start(t, lab.MySQL, lab.Config{}))
	t.Run("our table", func(t *testing.T) {
		require.NoError(t, barrier.CreateTable(t.Context(), db, barrier.MySQL, ""))
		shared(t, sqlVault(t, "mysql", db, ""))
	})
	t.Run("their table", func(t *testing.T) {
		run(t, db, "DROP TABLE vault", "CREATE DATABASE theirs", theirMySQL)
		shared(t, sqlVault(t, "mysql", db, "theirs.barrier"))
	})
}

func TestBarrier_IsSharedWithDtm_OnPostgres(t *testing.T) {
	t.Parallel()
	db := openDB(t, "pgx", labtest.Start(t, lab.Postgres, lab.Config{}))
	t.Run("our table", func(t *testing.T) {
		require.NoError(t, barrier.CreateTable(t.Context(), db, barrier.Postgres, ""))
		shared(t, sqlVault(t, "pgx", db, ""))
	})
	t.Run("their table", func(t *testing.T) {
		run(t, db, "DROP TABLE vault", "CREATE SCHEMA theirs", theirPostgres)
		shared(t, sqlVault(t, "pgx", db, "theirs.barrier"))
	})
}

func TestBarrier_IsSharedWithDtm_OnRedis(t *testing.T) {
	t.Parallel()
	shared(t, redisVault(t))
}

// shared shows that what one party has seen, the other knows.
func shared(t *testing.T, v vault) {
	for _, order := range []struct {
		name          string
		first, second func(ctx context.Context, gid, op string, amount int) error
	}{
		{"ours-first", v.ours, v.dtms},
		{"dtms-first", v.dtms, v.ours},
	} {
		call := func(party func(context.Context, string, string, int) error, gid, op string, amount, want int) {
			t.Helper()
			require.NoError(t, party(t.Context(), gid, op, amount), order.name)
			require.Equal(t, want, v.balance(t), order.name)
		}
		gid := order.name + "-done"
		call(order.first, gid, "action", -7, 93)
		call(order.second, gid, "action", -7, 93)
		call(order.second, gid, "compensate", 7, 100)
		call(order.first, gid, "compensate", 7, 100)
		call(order.first, gid, "action", -7, 100)

		gid = order.name + "-never-done"
		call(order.first, gid, "compensate", 7, 100)
		call(order.second, gid, "compensate", 7, 100)
		call(order.second, gid, "action", -7, 100)
	}

	const each = 20
	errs := make([]error, 2*each)
	var all sync.WaitGroup
	for i, party := range []func(context.Context, string, string, int) error{v.ours, v.dtms} {
		for n := range each {
			all.Go(func() { errs[i*each+n] = party(t.Context(), "at-once", "action", -7) })
		}
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, 93, v.balance(t))
}
