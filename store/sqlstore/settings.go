package sqlstore

import (
	"maps"

	"gorm.io/gorm"

	"sagabench/store"
)

// valuesOf runs a query for names and values.
func valuesOf(query *gorm.DB) (map[string]string, error) {
	rows, err := query.Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, rows.Err()
}

func (d *mysqlDialect) settings(db *gorm.DB) (store.Settings, error) {
	values, err := valuesOf(db.Raw("SHOW GLOBAL VARIABLES WHERE Variable_name IN ?", []string{
		"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_flush_method", "innodb_doublewrite",
		"innodb_buffer_pool_size", "innodb_log_writer_threads",
	}))
	if err != nil {
		return store.Settings{}, err
	}
	// MySQL can do without its redo log, which is no variable.
	redo, err := valuesOf(db.Raw("SHOW GLOBAL STATUS LIKE ?", redoLog))
	if err != nil {
		return store.Settings{}, err
	}
	maps.Copy(values, redo)
	return store.Settings{
		Driver:     "mysql",
		Version:    d.version,
		Durability: mysqlDurability(values),
		Values:     values,
	}, nil
}

const redoLog = "Innodb_redo_log_enabled"

// mysqlDurability never says D4: semi-synchronous replication goes on without
// the other machine when that is slow.
func mysqlDurability(values map[string]string) store.Durability {
	switch {
	case values["innodb_flush_method"] == "nosync", values["innodb_flush_method"] == "littlesync":
		return store.D1 // whenever the kernel likes: nothing about a second can be promised
	case values[redoLog] == "OFF":
		return store.D1 // the tables may be of no use after a crash
	case values["innodb_flush_log_at_trx_commit"] != "1":
		return store.D2
	case values["log_bin"] == "ON" && values["sync_binlog"] != "1":
		return store.D2 // what the binlog does not have is rolled back after a crash
	case values["innodb_doublewrite"] == "OFF", values["innodb_doublewrite"] == "DETECT_ONLY":
		return store.D2 // a page that was half-written cannot be repaired
	default:
		return store.D3
	}
}

func (d *postgresDialect) settings(db *gorm.DB) (store.Settings, error) {
	values, err := valuesOf(db.Raw("SELECT name, setting FROM pg_settings WHERE name IN ?", []string{
		"server_version", "synchronous_commit", "fsync", "full_page_writes", "synchronous_standby_names",
		"wal_sync_method", "shared_buffers",
	}))
	if err != nil {
		return store.Settings{}, err
	}
	version := values["server_version"]
	delete(values, "server_version")
	return store.Settings{
		Driver:     "postgres",
		Version:    version,
		Durability: postgresDurability(values),
		Values:     values,
	}, nil
}

func postgresDurability(values map[string]string) store.Durability {
	switch commit := values["synchronous_commit"]; {
	case values["fsync"] != "on":
		return store.D1 // whenever the kernel likes: nothing about a second can be promised
	case commit == "off":
		return store.D2
	case values["full_page_writes"] != "on":
		return store.D2 // a page that was half-written cannot be repaired
	case values["synchronous_standby_names"] != "" && (commit == "on" || commit == "remote_apply"):
		return store.D4
	default:
		return store.D3
	}
}
