package barrier_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/saga/barrier"
)

// account is a balance behind a barrier. It does not fall below 0.
type account interface {
	add(ctx context.Context, b *barrier.Barrier, amount int) error
	set(t *testing.T, balance int)
	balance(t *testing.T) int
	marks(t *testing.T, gid string) int
	gid() string // that no other test has
}

// forEachAccount runs a test on every engine, with an account that holds 100.
func forEachAccount(t *testing.T, test func(t *testing.T, a account)) {
	forEachDialect(t, func(t *testing.T, a *sqlAccount) { test(t, a) })
	forEachRedis(t, func(t *testing.T, a *redisAccount) { test(t, a) })
}

func forEachDialect(t *testing.T, test func(t *testing.T, a *sqlAccount)) {
	for name, dialect := range map[string]barrier.Dialect{"mysql": barrier.MySQL, "postgres": barrier.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newSQLAccount(t, dialect, ""))
		})
	}
}

func forEachRedis(t *testing.T, test func(t *testing.T, a *redisAccount)) {
	for _, binary := range lab.Redis.Binaries() {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			test(t, newRedisAccount(t, labtest.Start(t, lab.Redis, lab.Config{Binary: binary})))
		})
	}
}

type sqlAccount struct {
	db      *sql.DB
	dialect barrier.Dialect
	id      string       // of the account, and of the test's sagas
	began   atomic.Int64 // work, in transactions that need not have been committed
}

func newSQLAccount(t *testing.T, dialect barrier.Dialect, options string) *sqlAccount {
	t.Helper()
	db, err := openDB(dialect, "bank", options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	a := &sqlAccount{db: db, dialect: dialect, id: fmt.Sprintf("test%d", rand.Uint64())}
	a.exec(t, "INSERT INTO account VALUES ('"+a.id+"', 100)")
	return a
}

func (a *sqlAccount) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := a.db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func (a *sqlAccount) number(t *testing.T, query string) int {
	t.Helper()
	var n int
	require.NoError(t, a.db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}

func (a *sqlAccount) add(ctx context.Context, b *barrier.Barrier, amount int) error {
	return b.Call(ctx, a.db, a.dialect, a.adding(ctx, amount))
}

// adding is the work of adding amount to the account.
func (a *sqlAccount) adding(ctx context.Context, amount int) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		a.began.Add(1)
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + "+strconv.Itoa(amount)+
			" WHERE id = '"+a.id+"'"); err != nil {
			return err
		}
		var balance int
		if err := tx.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = '"+a.id+"'").Scan(&balance); err != nil {
			return err
		}
		if balance < 0 {
			return fmt.Errorf("%w: the balance is too low", barrier.ErrRefused)
		}
		return nil
	}
}

func (a *sqlAccount) set(t *testing.T, balance int) {
	t.Helper()
	a.exec(t, "UPDATE account SET balance = "+strconv.Itoa(balance)+" WHERE id = '"+a.id+"'")
}

func (a *sqlAccount) balance(t *testing.T) int {
	t.Helper()
	return a.number(t, "SELECT balance FROM account WHERE id = '"+a.id+"'")
}

func (a *sqlAccount) marks(t *testing.T, gid string) int {
	t.Helper()
	return a.number(t, "SELECT count(*) FROM dtm_barrier.barrier WHERE gid = '"+gid+"'")
}

func (a *sqlAccount) gid() string { return a.id }

type redisAccount struct {
	rdb *redis.Client // of a server of its own
}

const balanceKey = "balance"

func newRedisAccount(t *testing.T, server *lab.Server) *redisAccount {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	options.DisableIdentity = true
	a := &redisAccount{redis.NewClient(options)}
	t.Cleanup(func() { require.NoError(t, a.rdb.Close()) })
	a.set(t, 100)
	return a
}

func (a *redisAccount) add(ctx context.Context, b *barrier.Barrier, amount int) error {
	return b.AdjustRedis(ctx, a.rdb, time.Hour, balanceKey, int64(amount))
}

func (a *redisAccount) set(t *testing.T, balance int) {
	t.Helper()
	require.NoError(t, a.rdb.Set(t.Context(), balanceKey, balance, 0).Err())
}

func (a *redisAccount) balance(t *testing.T) int {
	t.Helper()
	n, err := a.rdb.Get(t.Context(), balanceKey).Int()
	require.NoError(t, err)
	return n
}

func (a *redisAccount) marks(t *testing.T, gid string) int {
	t.Helper()
	keys, err := a.rdb.Keys(t.Context(), gid+"-*").Result()
	require.NoError(t, err)
	return len(keys)
}

func (a *redisAccount) gid() string { return "test" }

func action(gid string) *barrier.Barrier {
	return &barrier.Barrier{TransType: "saga", GID: gid, BranchID: "01", Op: "action"}
}

func compensation(gid string) *barrier.Barrier {
	return &barrier.Barrier{TransType: "saga", GID: gid, BranchID: "01", Op: "compensate"}
}
