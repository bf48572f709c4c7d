package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"strconv"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/durability"
	"sagabench/store/sqlstore/sqlconn"
)

// withLossWindow sets how much time a crash loses in class D2: a setting, in units.
func withLossWindow(s store.Settings, name string, unit time.Duration) store.Settings {
	if n, err := strconv.Atoi(s.Values[name]); err == nil && n > 0 && s.Durability == store.D2 {
		s.Values[store.LossWindow] = (time.Duration(n) * unit).String()
	}
	return s
}

func (d *mysqlDialect) settings(ctx context.Context, db *sql.DB) (store.Settings, error) {
	values, err := sqlconn.QueryValues(ctx, db, `SHOW GLOBAL VARIABLES WHERE Variable_name IN (
		'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_flush_method', 'innodb_doublewrite',
		'innodb_flush_log_at_timeout', 'innodb_buffer_pool_size', 'innodb_log_writer_threads')
		OR Variable_name LIKE 'rpl_semi_sync_%'`)
	if err != nil {
		return store.Settings{}, err
	}
	// MySQL can run without its redo log, which no variable shows.
	names := "'" + durability.RedoLog + "', 'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status'"
	if d.galera {
		names += ", 'wsrep_cluster_size', 'wsrep_provider_version'"
	}
	status, err := sqlconn.QueryValues(ctx, db, "SHOW GLOBAL STATUS WHERE Variable_name IN ("+names+")")
	if err != nil {
		return store.Settings{}, err
	}
	maps.Copy(values, status)
	values = durability.WithSemiSync(values)
	class := durability.MySQL(values)
	// With a binlog a transaction is on disk, prepared and in the binlog, before it is
	// shown; with a replica, too, on that one. But after a crash the server also shows what
	// it had not sent.
	d.unflushed.Store(class == store.D4 || class == store.D3 && values["log_bin"] != "ON")
	settings := store.Settings{
		Driver:     "mysql",
		Version:    d.version,
		Durability: class,
		Values:     values,
	}
	return withLossWindow(settings, "innodb_flush_log_at_timeout", time.Second), nil
}

func (d *postgresDialect) settings(ctx context.Context, db *sql.DB) (store.Settings, error) {
	values, err := sqlconn.QueryValues(ctx, db, `SELECT name, setting FROM pg_settings WHERE name IN (
		'server_version', 'synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names',
		'max_wal_senders', 'wal_sync_method', 'wal_writer_delay', 'shared_buffers')`)
	if err != nil {
		return store.Settings{}, err
	}
	version := values["server_version"]
	delete(values, "server_version")
	settings := store.Settings{
		Driver:     "postgres",
		Version:    version,
		Durability: durability.Postgres(values),
		Values:     values,
	}
	delete(values, "max_wal_senders")
	d.unreplicated.Store(settings.Durability == store.D4)
	// Three rounds of its writer: https://www.postgresql.org/docs/current/wal-async-commit.html
	return withLossWindow(settings, "wal_writer_delay", 3*time.Millisecond), nil
}
