package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
	"sagabench/store/storetest"
)

// kind is one kind of server under the same tests, which share it. Each has a
// schema of its own.
type kind struct {
	name   string // of its driver
	label  string // for tests to be told apart by
	binary string // empty: as installed
	start  func(ctx context.Context, settings map[string]string) (*lab.Server, error)
	quick  map[string]string // settings that spare the disk
	server *lab.Server
}

// kinds are MariaDB or MySQL, as installed; more of these, where there are; and
// PostgreSQL.
var kinds = allKinds()

func allKinds() []*kind {
	var all []*kind
	for _, binary := range lab.MySQL.Binaries() {
		all = append(all, &kind{
			name: "mysql", label: "mysql" + binary, binary: binary,
			quick: map[string]string{"innodb_flush_method": "nosync"},
			start: func(ctx context.Context, settings map[string]string) (*lab.Server, error) {
				return lab.MySQL.Start(ctx, lab.Config{Binary: binary, Settings: settings})
			},
		})
	}
	return append(all, &kind{
		name: "postgres", label: "postgres",
		quick: map[string]string{"fsync": "off"},
		start: func(ctx context.Context, settings map[string]string) (*lab.Server, error) {
			return lab.Postgres.Start(ctx, lab.Config{Settings: settings})
		},
	})
}

func TestMain(m *testing.M) {
	// Every sequence makes a schema, which costs a server tens of milliseconds.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	code := run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) int {
	for _, k := range kinds {
		server, err := k.start(context.Background(), k.quick)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Stop()
		k.server = server
	}
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func forEach(t *testing.T, test func(t *testing.T, k *kind)) {
	t.Helper()
	forSome(t, kinds, test)
}

// forEachMySQL leaves out PostgreSQL.
func forEachMySQL(t *testing.T, test func(t *testing.T, k *kind)) {
	t.Helper()
	forSome(t, slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool { return k.name != "mysql" }), test)
}

func forSome(t *testing.T, kinds []*kind, test func(t *testing.T, k *kind)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.label, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// own starts a server for one test.
func (k *kind) own(t testing.TB, settings map[string]string) *lab.Server {
	t.Helper()
	server, err := k.start(context.WithoutCancel(t.Context()), settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func (k *kind) config() Config { return configOf(k.server) }

// configOf is a schema that nobody else has.
func configOf(server *lab.Server) Config {
	cfg := DefaultConfig()
	cfg.URL = server.URL()
	cfg.Schema = "test_" + strings.ToLower(rand.Text())
	return cfg
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s := openOnly(t, cfg)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openOnly leaves it to the caller to close the store.
func openOnly(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	return s
}

func (k *kind) harness() storetest.Harness {
	return storetest.Harness{
		Open: func(t testing.TB, opts storetest.Options) store.Store {
			cfg := k.config()
			cfg.Retention = opts.Retention
			return openOnly(t, cfg)
		},
		// 64 goroutines wait for a row, each for a second at most.
		Busy: func(s store.Store, err error) bool { return s.(*Store).dialect.isLocked(err) },
		Reopen: func(t testing.TB, s store.Store) store.Store {
			require.NoError(t, s.Close())
			return openOnly(t, s.(*Store).cfg)
		},
	}
}

func TestStore(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) { storetest.Run(t, k.harness()) })
}

func TestStore_Model(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) { storetest.RunModel(t, k.harness()) })
}

// BenchmarkStore runs on servers that sync every commit.
func BenchmarkStore(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.label, func(b *testing.B) {
			durable := *k
			durable.server = k.own(b, nil)
			storetest.Benchmark(b, durable.harness())
		})
	}
}

// mustExec runs a statement. As in Store.exec, its parameters are written as ?.
func (s *Store) mustExec(t *testing.T, text string, args ...any) {
	t.Helper()
	require.NoError(t, s.exec(t.Context(), s.db, text, args...))
}

// number returns the one number that a query finds.
func (s *Store) number(t *testing.T, text string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, s.db.QueryRowContext(t.Context(), s.dialect.bind(text), args...).Scan(&n))
	return n
}

// begin starts a transaction, which the caller must end.
func (s *Store) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := s.db.Begin()
	require.NoError(t, err)
	return tx
}

// lockRow locks a row for the rest of a transaction.
func (s *Store) lockRow(t *testing.T, tx sqlconn.Session, n int) {
	t.Helper()
	require.NoError(t, s.exec(t.Context(), tx, "SELECT gid FROM saga WHERE gid = ? FOR UPDATE", gid(n)))
}

// The changes of these tests are about sagas of two steps, known by a number.

func gid(n int) string { return fmt.Sprintf("saga-%d", n) }

func create(n int) *store.Create {
	return &store.Create{GID: gid(n), Body: []byte(`{"steps":[{},{}]}`), Steps: 2, Owner: "test"}
}

func mark(n int) *store.Transition {
	return &store.Transition{
		GID: gid(n), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted,
		Marks: []store.SetMark{{Branch: 0, Mark: store.MarkSucceeded}},
	}
}

func finish(n int) *store.Transition {
	return &store.Transition{GID: gid(n), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded}
}

func requireApplied(t *testing.T, s store.Applier, changes ...store.Change) {
	t.Helper()
	for i, err := range s.Apply(context.WithoutCancel(t.Context()), changes) {
		require.NoError(t, err, "change %d", i)
	}
}
