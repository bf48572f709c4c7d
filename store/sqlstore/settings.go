package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// queryValues runs a query of names and values.
func queryValues(ctx context.Context, db sqlconn.Session, text string) (map[string]string, error) {
	type value struct{ name, value string }
	rows, err := sqlconn.Query(ctx, db, text, nil, func(v *value) []any { return []any{&v.name, &v.value} })
	values := make(map[string]string, len(rows))
	for _, v := range rows {
		values[v.name] = v.value
	}
	return values, err
}

// withLossWindow sets how much time a crash loses in class D2: a setting, in units.
func withLossWindow(s store.Settings, name string, unit time.Duration) store.Settings {
	if n, err := strconv.Atoi(s.Values[name]); err == nil && n > 0 && s.Durability == store.D2 {
		s.Values[store.LossWindow] = (time.Duration(n) * unit).String()
	}
	return s
}

func (d *mysqlDialect) settings(ctx context.Context, db *sql.DB) (store.Settings, error) {
	values, err := queryValues(ctx, db, `SHOW GLOBAL VARIABLES WHERE Variable_name IN (
		'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_flush_method', 'innodb_doublewrite',
		'innodb_flush_log_at_timeout', 'innodb_buffer_pool_size', 'innodb_log_writer_threads')
		OR Variable_name LIKE 'rpl_semi_sync_%'`)
	if err != nil {
		return store.Settings{}, err
	}
	// MySQL can run without its redo log, which no variable shows.
	status, err := queryValues(ctx, db, "SHOW GLOBAL STATUS WHERE Variable_name IN "+
		"('"+redoLog+"', 'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status')")
	if err != nil {
		return store.Settings{}, err
	}
	maps.Copy(values, status)
	values = withSemiSync(values)
	durability := mysqlDurability(values)
	// With a binlog a transaction is on disk, prepared and in the binlog, before it is
	// shown; with a replica, too, on that one. But after a crash the server also shows what
	// it had not sent.
	d.unflushed.Store(durability == store.D4 || durability == store.D3 && values["log_bin"] != "ON")
	settings := store.Settings{
		Driver:     "mysql",
		Version:    d.version,
		Durability: durability,
		Values:     values,
	}
	return withLossWindow(settings, "innodb_flush_log_at_timeout", time.Second), nil
}

const redoLog = "Innodb_redo_log_enabled"

func mysqlDurability(values map[string]string) store.Durability {
	switch {
	case values["innodb_flush_method"] == "nosync", values["innodb_flush_method"] == "littlesync":
		return store.D1 // the kernel decides when to write, which may be later than a second
	case values[redoLog] == "OFF":
		return store.D1 // the tables may be of no use after a crash
	case values["log_bin"] == "ON" && values["sync_binlog"] != "1":
		return store.D1 // what the binlog lacks is rolled back, and it is not written with each commit
	case values["innodb_doublewrite"] == "OFF", values["innodb_doublewrite"] == "DETECT_ONLY":
		return store.D1 // a half-written page cannot be repaired, whatever its age
	case values["innodb_flush_log_at_trx_commit"] != "1":
		return store.D2
	case waitsForReplica(values):
		return store.D4
	default:
		return store.D3
	}
}

// withSemiSync gives the settings of semi-synchronous replication the names that MariaDB
// has, and leaves them out if there is none.
func withSemiSync(values map[string]string) map[string]string {
	named := make(map[string]string, len(values))
	for name, value := range values {
		named[strings.NewReplacer("_sync_source_", "_sync_master_", "_no_replica", "_no_slave", "_sync_replica_", "_sync_slave_").Replace(name)] = value
	}
	maps.DeleteFunc(named, func(name, _ string) bool {
		return strings.HasPrefix(strings.ToLower(name), semiSync) && (named[semiSync+"master_enabled"] != "ON" || !slices.Contains(semiSyncSettings, name))
	})
	return named
}

const semiSync = "rpl_semi_sync_"

// semiSyncSettings are those that decide whether a primary waits.
var semiSyncSettings = []string{
	semiSync + "master_enabled", semiSync + "master_wait_point", semiSync + "master_wait_no_slave", semiSync + "master_timeout", semiSyncStatus,
}

// semiSyncStatus is OFF once the primary has gone on without a replica.
const semiSyncStatus = "Rpl_semi_sync_master_status"

// leastWait is how long a primary must wait for its replica: nobody leaves a store without
// an answer for so long. MySQL takes up to 49 days.
const leastWait = 30 * 24 * time.Hour

// waitsForReplica reports whether a commit is shown and acknowledged only once a replica has
// it in its relay log, also while no replica is there.
func waitsForReplica(values map[string]string) bool {
	timeout, err := strconv.ParseFloat(values[semiSync+"master_timeout"], 64)
	return err == nil && timeout >= float64(leastWait.Milliseconds()) &&
		values["log_bin"] == "ON" && values[semiSync+"master_enabled"] == "ON" && values[semiSyncStatus] == "ON" &&
		values[semiSync+"master_wait_point"] == "AFTER_SYNC" && values[semiSync+"master_wait_no_slave"] == "ON"
}

func (d *postgresDialect) settings(ctx context.Context, db *sql.DB) (store.Settings, error) {
	values, err := queryValues(ctx, db, `SELECT name, setting FROM pg_settings WHERE name IN (
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
		Durability: postgresDurability(values),
		Values:     values,
	}
	delete(values, "max_wal_senders")
	d.unreplicated.Store(settings.Durability == store.D4)
	// Three rounds of its writer: https://www.postgresql.org/docs/current/wal-async-commit.html
	return withLossWindow(settings, "wal_writer_delay", 3*time.Millisecond), nil
}

func postgresDurability(values map[string]string) store.Durability {
	switch commit := values["synchronous_commit"]; {
	case values["fsync"] != "on":
		return store.D1 // the kernel decides when to write, which may be later than a second
	case values["full_page_writes"] != "on":
		return store.D1 // a half-written page cannot be repaired, whatever its age
	case commit == "off":
		return store.D2
	case commit == "local", values["synchronous_standby_names"] == "", values["max_wal_senders"] == "0":
		return store.D3 // it waits for nobody
	case commit == "on", commit == "remote_apply", commit == "remote_write":
		return store.D4
	default:
		return store.D3
	}
}
