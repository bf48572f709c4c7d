package probe

import (
	"database/sql"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store/open"
)

// sqlKind is a kind of server with a table that stands for a store's.
type sqlKind struct {
	server   *lab.Server
	db       *sql.DB // of one connection
	store    Server
	makeWide string // fills the table
}

func startMySQL(t *testing.T) sqlKind { return startMySQLBinary(t, "") }

func startMySQLBinary(t *testing.T, binary string) sqlKind {
	server := labtest.Start(t, lab.MySQL, lab.Config{Binary: binary})
	db := openDB(t, "mysql", server.DSN(""))
	execute(t, db, "CREATE DATABASE place")
	execute(t, db, "CREATE TABLE place.saga (id INT AUTO_INCREMENT PRIMARY KEY, body TEXT)")
	return sqlKind{
		server: server, db: db, store: Server{Driver: open.MySQL, URL: server.URL(), Here: true, Schema: "place"},
		makeWide: "INSERT INTO place.saga (body) WITH ten AS (SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 9) + ") " +
			"SELECT REPEAT('x', 1000) FROM ten AS a, ten AS b, ten AS c, ten AS d, ten AS e LIMIT %d",
	}
}

func startPostgres(t *testing.T) sqlKind {
	server := labtest.Start(t, lab.Postgres, lab.Config{})
	db := openDB(t, "pgx", server.DSN(""))
	execute(t, db, "CREATE SCHEMA place")
	execute(t, db, "CREATE TABLE place.saga (id SERIAL PRIMARY KEY, body TEXT)")
	return sqlKind{
		server: server, db: db, store: Server{Driver: open.Postgres, URL: server.URL(), Here: true, Schema: "place"},
		makeWide: "INSERT INTO place.saga (body) SELECT REPEAT('x', 1000) FROM generate_series(1, %d)",
	}
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func (k sqlKind) config() Config {
	cfg := Default()
	cfg.Store = k.store
	return cfg
}

// finish ends the interval of a sampler whose failures are part of the test.
func finish(t *testing.T, s *Sampler) Usage {
	t.Helper()
	require.NoError(t, s.End(t.Context()))
	return s.Usage()
}

const insert = "INSERT INTO place.saga (body) VALUES ('a saga')"

func TestUsage_MySQLCostsAreThoseOfTheClients(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.MySQL.Binaries() {
		t.Run("mysql"+binary, func(t *testing.T) {
			t.Parallel()
			requireCostsOfTheClients(t, startMySQLBinary(t, binary))
		})
	}
}

func requireCostsOfTheClients(t *testing.T, k sqlKind) {
	t.Helper()
	t.Run("the probe alone costs nothing", func(t *testing.T) {
		s := begin(t, k.config())
		for range 20 {
			_, err := s.store.(*mysqlServer).look(t.Context())
			require.NoError(t, err)
		}
		u := finish(t, s)
		require.Zero(t, *u.StoreBytesIn)
		require.Zero(t, *u.StoreBytesOut)
		require.Zero(t, *u.StoreCalls)
	})
	t.Run("statements", func(t *testing.T) {
		const sagas = 500
		s := begin(t, k.config())
		for range sagas {
			execute(t, k.db, insert)
		}
		u := finish(t, s)
		require.Equal(t, k.server.PID(), s.store.(*mysqlServer).family.pid)
		require.EqualValues(t, sagas, *u.StoreCalls)
		require.EqualValues(t, sagas*(5+len(insert)), *u.StoreBytesIn, "a packet's head and its command")
		require.Positive(t, *u.StoreBytesOut)
		require.InDelta(t, sagas, *u.StoreFsyncs, 0.2*sagas, "each is a commit, one after another")
		require.Nil(t, u.StoreMemory)
		require.Len(t, u.Failures, 1)
		require.Contains(t, u.Failures[0], "too little to tell")
		require.False(t, u.Evidence().StoreOneCore)
	})
	t.Run("waits for a row's lock", func(t *testing.T) {
		execute(t, k.db, insert)
		s := begin(t, k.config())
		execute(t, k.db, "BEGIN")
		execute(t, k.db, "UPDATE place.saga SET body = '' WHERE id = 1")
		var waiting sync.WaitGroup
		for range 2 {
			other := openDB(t, "mysql", k.server.DSN(""))
			waiting.Go(func() { _, _ = other.ExecContext(t.Context(), "UPDATE place.saga SET body = 'x' WHERE id = 1") })
		}
		var name, n string
		waits := func() bool {
			row := k.db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
			return row.Scan(&name, &n) == nil && n == "2"
		}
		require.Eventually(t, waits, 20*time.Second, time.Millisecond)
		began := time.Now()
		require.Eventually(t, func() bool { return time.Since(began) > 200*time.Millisecond }, 20*time.Second, time.Millisecond)
		execute(t, k.db, "COMMIT")
		waiting.Wait()
		u := finish(t, s)
		require.InDelta(t, 2*time.Since(began).Seconds(), *u.StoreLockTime, 0.4)
		require.Greater(t, *u.StoreLockTime, 0.35)
		require.InEpsilon(t, *u.StoreLockTime/u.Elapsed.Seconds(), *u.Evidence().StoreLockWaits, 1e-9)
	})
	t.Run("size and CPU", func(t *testing.T) {
		execute(t, k.db, fmt.Sprintf(k.makeWide, 10_000))
		const rows = 30_000
		s := begin(t, k.config())
		execute(t, k.db, fmt.Sprintf(k.makeWide, rows))
		u := end(t, s)
		require.InDelta(t, 1080, *u.PerSaga(rows).StoreMemoryBytes, 150)
		require.Greater(t, *u.StoreCPU, 0.01)
		require.Less(t, *u.StoreCPU, 4*u.Elapsed.Seconds())

		s = begin(t, k.config())
		execute(t, k.db, "DELETE FROM place.saga LIMIT 10")
		execute(t, k.db, "FLUSH STATUS")
		u = finish(t, s)
		require.Nil(t, u.StoreMemory)
		require.Contains(t, strings.Join(u.Failures, "\n"), "dropped meanwhile")
	})
	requireRestartIsSeen(t, k)
}

func TestUsage_PostgresCostsAreThoseOfTheClients(t *testing.T) {
	t.Parallel()
	k := startPostgres(t)
	t.Run("syncs, though sessions tell of them late", func(t *testing.T) {
		s, err := New(t.Context(), k.config())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		sagas := 0
		load := func(duration time.Duration) {
			for began := time.Now(); time.Since(began) < duration; sagas++ {
				execute(t, k.db, insert)
			}
		}
		load(leastWarmUp)
		sagas = 0
		require.NoError(t, s.Begin(t.Context()))
		load(3 * time.Second) // it tells at least twice, also when it is a little late
		u := end(t, s)
		require.Equal(t, k.server.PID(), s.store.(*postgresServer).family.pid)
		require.InEpsilon(t, sagas, *u.StoreFsyncs, 0.2, "each is a commit, one after another")
		require.Nil(t, u.StoreCalls)
		require.Nil(t, u.StoreBytesIn)
		require.Nil(t, u.StoreBytesOut)
	})
	t.Run("size", func(t *testing.T) {
		const rows = 10_000
		s := begin(t, k.config())
		execute(t, k.db, fmt.Sprintf(k.makeWide, rows))
		u := finish(t, s)
		require.Nil(t, u.StoreFsyncs, "they tell late, and there was no warm-up")
		require.InDelta(t, 1170, *u.PerSaga(rows).StoreMemoryBytes, 150)
	})
	t.Run("CPU of sessions that have ended", func(t *testing.T) {
		s := begin(t, k.config())
		for range 8 {
			db := openDB(t, "pgx", k.server.DSN(""))
			execute(t, db, "SELECT sum(n) FROM generate_series(1, 500000) AS n")
			require.NoError(t, db.Close())
		}
		require.Eventually(t, func() bool { return len(childrenOf(k.server.PID())) <= 8 }, 10*time.Second, time.Millisecond)
		u := finish(t, s)
		require.Greater(t, *u.StoreCPU, 0.1)
		require.Less(t, *u.StoreCPU, 4*u.Elapsed.Seconds())
	})
	requireRestartIsSeen(t, k)
}

// requireRestartIsSeen is the end of the server's life.
func requireRestartIsSeen(t *testing.T, k sqlKind) {
	t.Run("a restart", func(t *testing.T) {
		s := begin(t, k.config())
		require.NoError(t, k.server.Kill())
		require.NoError(t, k.server.Restart(t.Context()))
		u := finish(t, s)
		require.Equal(t, []string{"the store: " + errRestarted.Error()}, u.Failures)
		require.Equal(t, result.Cost{LoadCPUUS: u.PerSaga(1).LoadCPUUS}, u.PerSaga(1))
	})
}

func TestUsage_StoreElsewhere_HasNoCPU(t *testing.T) {
	t.Parallel()
	s := sqlServer{}
	s.findFamily(t.Context(), Server{}, 1)
	var u storeUse
	s.addCPU(&u)
	require.Nil(t, u.cpu)
	require.ErrorContains(t, u.failures[0], "another machine")
}

func TestListener_WantsTheServerItself(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = listener(t.Context(), port, "mariadbd", "mysqld")
	require.ErrorContains(t, err, "only forwards")
	require.NoError(t, l.Close())
	_, err = listener(t.Context(), port, "mariadbd", "mysqld")
	require.ErrorIs(t, err, errNoListener)
}

func TestParseStatus_SaysWhenSyncsAreNotCounted(t *testing.T) {
	t.Parallel()
	type values = map[string]string
	parse := func(syncs, method, binlog string) *mysqlCounts {
		status := values{"Bytes_received": "1", "Bytes_sent": "2", "Questions": "3", "Handler_delete": "4", "Innodb_data_fsyncs": "5", "Innodb_row_lock_time": "6"}
		if syncs != "" {
			status["Syncs"] = syncs
		}
		c, err := parseStatus(status, values{"innodb_flush_method": method, "log_bin": binlog})
		require.NoError(t, err)
		return c
	}
	require.EqualValues(t, 12, parse("7", "O_DIRECT", "ON").fsyncs)
	require.NoError(t, parse("7", "O_DIRECT", "ON").noFsyncs)
	require.NoError(t, parse("", "O_DIRECT", "OFF").noFsyncs)
	require.EqualValues(t, 5, parse("", "O_DIRECT", "OFF").fsyncs)
	require.ErrorContains(t, parse("", "O_DIRECT", "ON").noFsyncs, "binlog")
	require.Error(t, parse("7", "O_DSYNC", "OFF").noFsyncs)
	require.NoError(t, parse("7", "nosync", "OFF").noFsyncs)
	_, err := parseStatus(values{}, values{})
	require.Error(t, err)
}

func TestSyncs_AddsWhatWasNotToldOf(t *testing.T) {
	t.Parallel()
	after := func(written, told, syncs int64) (*float64, []error) {
		var u storeUse
		n := u.syncs(&postgresCounts{written: 1000, toldBytes: 500, toldSyncs: 50}, &postgresCounts{written: 1000 + written, toldBytes: 500 + told, toldSyncs: 50 + syncs})
		return n, u.failures
	}
	n, failures := after(1000, 800, 80)
	require.Empty(t, failures)
	require.InDelta(t, 100, *n, 1e-9)
	n, _ = after(1000, 1250, 125)
	require.InDelta(t, 100, *n, 1e-9, "they told of what was before")
	n, _ = after(0, 0, 0)
	require.Zero(t, *n)
	n, failures = after(1000, 100, 10)
	require.Nil(t, n)
	require.ErrorContains(t, failures[0], "once a second")
	n, failures = after(1000, -500, 10)
	require.Nil(t, n)
	require.ErrorContains(t, failures[0], "went back")
}
