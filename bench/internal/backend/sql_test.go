package backend

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
	"sagabench/bench/internal/sample"
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
		server: server, db: db, store: Server{Driver: open.MySQL, URL: server.URL(), Local: true, Schema: "place"},
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
		server: server, db: db, store: Server{Driver: open.Postgres, URL: server.URL(), Local: true, Schema: "place"},
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

func (k sqlKind) config() sample.Config { return config(k.store) }

// finish ends the interval of a sampler whose failures are part of the test.
func finish(t *testing.T, s *sample.Sampler) sample.Usage {
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
	t.Run("the sampler alone costs nothing", func(t *testing.T) {
		store, cfg := opened(t, k.store)
		s := begin(t, cfg)
		for range 20 {
			_, err := store.(*sqlSampler).counters(t.Context())
			require.NoError(t, err)
		}
		u := finish(t, s)
		require.Zero(t, *u.Total.StoreBytesIn)
		require.Zero(t, *u.Total.StoreBytesOut)
		require.Zero(t, *u.Total.StoreCalls)
	})
	t.Run("statements", func(t *testing.T) {
		const sagas = 200
		store, cfg := opened(t, k.store)
		s := begin(t, cfg)
		for range sagas {
			execute(t, k.db, insert)
		}
		u := finish(t, s)
		require.Equal(t, k.server.PID(), store.(*sqlSampler).process.pid)
		require.EqualValues(t, sagas, *u.Total.StoreCalls)
		require.EqualValues(t, sagas*(5+len(insert)), *u.Total.StoreBytesIn, "a packet's head and its command")
		require.Positive(t, *u.Total.StoreBytesOut)
		require.GreaterOrEqual(t, *u.Total.StoreFsyncs, 0.8*sagas, "each is a commit, one after another")
		require.Less(t, *u.Total.StoreFsyncs, 1.2*sagas+10*u.Elapsed.Seconds(), "and some of the server's own")
		require.Nil(t, u.Total.StoreMemoryBytes)
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
		first := time.Now()
		for range 2 {
			other := openDB(t, "mysql", k.server.DSN(""))
			waiting.Go(func() { _, _ = other.ExecContext(t.Context(), "UPDATE place.saga SET body = 'x' WHERE id = 1") })
		}
		var name, n string
		waits := func() bool {
			row := k.db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
			return row.Scan(&name, &n) == nil && n == "2"
		}
		require.Eventually(t, waits, time.Minute, time.Millisecond)
		began := time.Now()
		require.Eventually(t, func() bool { return time.Since(began) > 200*time.Millisecond }, time.Minute, time.Millisecond)
		execute(t, k.db, "COMMIT")
		waiting.Wait()
		longest := 2 * time.Since(first).Seconds()
		u := finish(t, s)
		seconds := *u.Resources.StoreLockWaits * u.Elapsed.Seconds()
		require.Greater(t, seconds, 0.35)
		require.Less(t, seconds, longest+0.1)
	})
	t.Run("size and CPU", func(t *testing.T) {
		execute(t, k.db, fmt.Sprintf(k.makeWide, 10_000))
		const rows = 30_000
		s := begin(t, k.config())
		execute(t, k.db, fmt.Sprintf(k.makeWide, rows))
		u := end(t, s)
		require.InDelta(t, 1080, *u.PerSaga(rows).StoreMemoryBytes, 150)
		require.Greater(t, *u.Total.StoreCPUUS, 0.01e6)
		require.Less(t, *u.Total.StoreCPUUS, 4e6*u.Elapsed.Seconds())

		s = begin(t, k.config())
		execute(t, k.db, "DELETE FROM place.saga LIMIT 10")
		execute(t, k.db, "FLUSH STATUS")
		u = finish(t, s)
		require.Nil(t, u.Total.StoreMemoryBytes)
		require.Contains(t, strings.Join(u.Failures, "\n"), "dropped meanwhile")
	})
	requireRestartIsSeen(t, k)
}

func TestUsage_PostgresCostsAreThoseOfTheClients(t *testing.T) {
	t.Parallel()
	k := startPostgres(t)
	t.Run("syncs, though sessions tell of them late", func(t *testing.T) {
		store, cfg := opened(t, k.store)
		s, err := sample.New(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		sagas := 0
		load := func(duration time.Duration, least int) {
			for began := time.Now(); time.Since(began) < duration || sagas < least; sagas++ {
				execute(t, k.db, insert)
			}
		}
		load(leastWarmUp, 1)
		sagas = 0
		require.NoError(t, s.Begin(t.Context()))
		load(3*time.Second, 100) // it tells at least twice, also when it is a little late
		u := end(t, s)
		require.Equal(t, k.server.PID(), store.(*postgresSampler).process.pid)
		require.InEpsilon(t, sagas, *u.Total.StoreFsyncs, 0.2, "each is a commit, one after another")
		require.Nil(t, u.Total.StoreCalls)
		require.Nil(t, u.Total.StoreBytesIn)
		require.Nil(t, u.Total.StoreBytesOut)
	})
	t.Run("size", func(t *testing.T) {
		const rows = 10_000
		s := begin(t, k.config())
		execute(t, k.db, fmt.Sprintf(k.makeWide, rows))
		u := finish(t, s)
		require.Nil(t, u.Total.StoreFsyncs, "they tell late, and there was no warm-up")
		require.InDelta(t, 1170, *u.PerSaga(rows).StoreMemoryBytes, 150)
	})
	t.Run("CPU of sessions that have ended", func(t *testing.T) {
		s := begin(t, k.config())
		for range 8 {
			db := openDB(t, "pgx", k.server.DSN(""))
			execute(t, db, "SELECT sum(n) FROM generate_series(1, 500000) AS n")
			require.NoError(t, db.Close())
		}
		require.Eventually(t, func() bool { return len(childrenOf(k.server.PID())) <= 8 }, time.Minute, time.Millisecond)
		u := finish(t, s)
		require.Greater(t, *u.Total.StoreCPUUS, 0.1e6)
		require.Less(t, *u.Total.StoreCPUUS, 4e6*u.Elapsed.Seconds())
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
	k := startPostgres(t)
	k.store.Local = false
	u := finish(t, begin(t, k.config()))
	require.Nil(t, u.Total.StoreCPUUS)
	require.Contains(t, strings.Join(u.Failures, "\n"), "store CPU: it runs on another machine")
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
	parse := func(syncs, method, binlog string) (float64, error) {
		status := values{"Bytes_received": "1", "Bytes_sent": "2", "Questions": "3", "Handler_delete": "4", "Innodb_data_fsyncs": "5", "Innodb_row_lock_time": "6"}
		if syncs != "" {
			status["Syncs"] = syncs
		}
		c, err := parseStatus(status, values{"innodb_flush_method": method, "log_bin": binlog})
		require.NoError(t, err)
		return c.values[keyFsyncs], c.unknown[keyFsyncs]
	}
	for _, x := range []struct {
		syncs, method, binlog string
		fsyncs                float64
		unknown               string
	}{
		{"7", "O_DIRECT", "ON", 12, ""},
		{"", "O_DIRECT", "OFF", 5, ""},
		{"", "O_DIRECT", "ON", 5, "binlog"},
		{"7", "O_DSYNC", "OFF", 12, "synced as it is written"},
		{"7", "nosync", "OFF", 12, ""},
	} {
		fsyncs, unknown := parse(x.syncs, x.method, x.binlog)
		require.InDelta(t, x.fsyncs, fsyncs, 0)
		if x.unknown == "" {
			require.NoError(t, unknown)
		} else {
			require.ErrorContains(t, unknown, x.unknown)
		}
	}
	_, err := parseStatus(values{}, values{})
	require.Error(t, err)
}

func TestFsyncs_AddsWhatWasNotReported(t *testing.T) {
	t.Parallel()
	after := func(written, bytes, syncs float64) (float64, error) {
		log := func(written, bytes, syncs float64) *counters {
			return &counters{values: map[string]float64{logWritten: written, reportedBytes: bytes, reportedSyncs: syncs}}
		}
		return fsyncs(log(1000, 500, 50), log(1000+written, 500+bytes, 50+syncs))
	}
	n, err := after(1000, 800, 80)
	require.NoError(t, err)
	require.InDelta(t, 100, n, 1e-9)
	n, _ = after(1000, 1250, 125)
	require.InDelta(t, 100, n, 1e-9, "they reported what was before")
	n, err = after(0, 0, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = after(1000, 100, 10)
	require.ErrorContains(t, err, "once a second")
	_, err = after(1000, -500, 10)
	require.ErrorContains(t, err, "went back")
}
