package sqlstore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/store"
	"sagabench/store/sqlstore/durability"
)

func TestOpen_RefusesWhatIsInvalid(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Config){
		"schema":      func(c *Config) { c.Schema = "a;b" },
		"retention":   func(c *Config) { c.Retention = -1 },
		"timeout":     func(c *Config) { c.Timeout = time.Millisecond },
		"conns":       func(c *Config) { c.Conns = 1 },
		"url: scheme": func(c *Config) { c.URL = "redis://u:letmein@h" },
		"url: want":   func(c *Config) { c.URL = "mysql://u:letmein%@h/" },
		"url: host":   func(c *Config) { c.URL = "mysql://u:letmein@/d" },
		"url: user":   func(c *Config) { c.URL = "mysql://h/d" },
		"url: data":   func(c *Config) { c.URL = "mysql://u:letmein@h/a-b" },
		"url: tls":    func(c *Config) { c.URL = "mysql://u:letmein@h/?tls=perhaps" },
		"url: option": func(c *Config) { c.URL = "mysql://u:letmein@h/?allowAllFiles=true" },
		"url: frag":   func(c *Config) { c.URL = "mysql://u:letmein@h/#x" },
		"sslmode":     func(c *Config) { c.URL = "postgres://u:letmein@h/d?sslmode=perhaps" },
		"99999":       func(c *Config) { c.URL = "postgres://u:letmein@h:99999/d" },
	} {
		cfg := DefaultConfig()
		cfg.URL = "mysql://u:letmein@127.0.0.1:1/"
		change(&cfg)
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, store.ErrInvalid, says)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "letmein")
	}
}

func TestOpen_SaysWhyItCannotConnect(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		server, option := k.server, "?tls=false"
		if k.name == "postgres" {
			option = "?sslmode=disable"
		}
		admin := open(t, configOf(server))
		user := admin.cfg.Schema
		create := "CREATE USER " + user + " IDENTIFIED BY 'letmein'"
		if k.name == "postgres" {
			create = "CREATE ROLE " + user + " LOGIN PASSWORD 'letmein'"
		}
		admin.mustExec(t, create)
		for _, tt := range []struct{ login, address, database, says string }{
			{user + ":letmein", "127.0.0.1:1", "postgres", "127.0.0.1:1"},
			{user + ":letmein2", server.Addr(), "postgres", user},
			{"nobody:letmein", server.Addr(), "postgres", "nobody"},
			{user + ":letmein", server.Addr(), "not_there", "not_there"},
			{user + ":letmein", server.Addr(), "postgres", "denied"}, // no right to create
		} {
			cfg := configOf(server)
			cfg.URL = k.name + "://" + tt.login + "@" + tt.address + "/" + tt.database + option
			_, err := Open(t.Context(), cfg)
			require.ErrorContains(t, err, tt.says, cfg.URL)
			require.NotContains(t, err.Error(), "letmein")
			require.NotContains(t, err.Error(), "\n")
		}
	})
}

func TestOpen_OfManyAtOnce_MakesOneSchema(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		cfg.Conns = 2
		stores := make([]*Store, 6)
		errs := make([]error, len(stores))
		var opening sync.WaitGroup
		for i := range stores {
			opening.Go(func() { stores[i], errs[i] = Open(context.WithoutCancel(t.Context()), cfg) })
		}
		opening.Wait()
		for i, s := range stores {
			require.NoError(t, errs[i])
			requireApplied(t, s, create(i))
		}
		require.EqualValues(t, len(stores[0].dialect.migrations()), stores[0].number(t, "SELECT COUNT(*) FROM saga_migration"))
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
	})
}

func TestOpen_LeavesTablesThatAreNotOurs(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s := open(t, cfg)
		requireApplied(t, s, create(1))
		s.mustExec(t, "DROP TABLE saga_migration")
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, store.ErrUnsafe)
		require.ErrorContains(t, err, "not ours")
		_, err = s.Get(t.Context(), gid(1))
		require.NoError(t, err)
	})
}

func TestOpen_RefusesANewerSchema(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s := open(t, cfg)
		s.mustExec(t, "INSERT INTO saga_migration (version, applied) VALUES (1000, 0)")
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, store.ErrUnsafe)
		require.ErrorContains(t, err, "1000")
	})
}

func TestCheckVersion_KnowsWhatServersHave(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"10.11.19-MariaDB-0+deb12u1": "skips",
		"5.5.5-10.6.1-MariaDB":       "skips",
		"10.5.9-MariaDB":             "",
		"8.0.36":                     "skips",
		"8.4.13-0ubuntu0.26.04.2":    "skips",
		"5.7.44-log":                 "",
		"8.0.11-TiDB-v8.5.2":         "",
		"5.5.5-10.2.1-MariaDB":       "refused",
		"5.6.51":                     "refused",
		"unknown":                    "refused",
	} {
		d := mysqlDialect{version: version}
		var got string
		if err := d.checkVersion(); err != nil {
			got = "refused"
			require.ErrorContains(t, err, version)
		} else {
			got = map[bool]string{true: "skips"}[d.skipLocked]
		}
		require.Equal(t, want, got, version)
	}
}

func TestCheckPostgres_RefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkPostgres(150_006, "PostgreSQL 15.6 (Debian 15.6-0+deb12u1) on x86_64-pc-linux-gnu", false))
	require.ErrorContains(t, checkPostgres(110_002, "PostgreSQL 11.2", false), "want PostgreSQL 12 or later")
	require.EqualError(t, checkPostgres(180_000, "CockroachDB CCL v26.3.1 (x86_64-pc-linux-gnu, built 2026/08/11)", false),
		"the server is CockroachDB: the store needs statements that it refuses")
}

func TestSettings_ReadTheDurabilityClass(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		s := open(t, k.config())
		got, err := s.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, k.name, got.Driver)
		require.Equal(t, store.D1, got.Durability, "%v", got.Values)
		require.GreaterOrEqual(t, len(got.Values), 6, "%v", got.Values)
		if d, is := s.dialect.(*mysqlDialect); is && !d.mariaDB {
			require.Equal(t, "ON", got.Values[durability.RedoLog])
		}
	}
}

// What is lost of the class D2 is what the server's own settings say.
func TestSettings_ReadHowMuchMayBeLost(t *testing.T) {
	race.Skip(t)
	forEach(t, func(t *testing.T, k *kind) {
		settings, name, want := map[string]string{"innodb_flush_log_at_trx_commit": "2", "innodb_flush_log_at_timeout": "7"}, "innodb_flush_log_at_timeout", "7s"
		if k.name == "postgres" {
			settings, name, want = map[string]string{"synchronous_commit": "off", "wal_writer_delay": "1000ms"}, "wal_writer_delay", "3s"
		}
		s := open(t, configOf(k.own(t, settings)))
		got, err := s.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.D2, got.Durability)
		require.NotEmpty(t, got.Values[name])
		require.Equal(t, "about the last "+want+" at risk", got.Meaning())
	})
}
