// Package durability says which durability class follows from the settings of an SQL server.
// What is not known counts as its worse value.
package durability

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/store"
)

// RedoLog is the status of MySQL that says whether it has a redo log.
const RedoLog = "Innodb_redo_log_enabled"

// MySQL returns the class of a MariaDB or MySQL with these variables, and RedoLog and the
// status of semi-synchronous replication: see WithSemiSync.
func MySQL(values map[string]string) store.Durability {
	switch {
	case values["innodb_flush_method"] == "nosync", values["innodb_flush_method"] == "littlesync":
		return store.D1 // the kernel decides when to write, which may be later than a second
	case values[RedoLog] == "OFF":
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

// WithSemiSync gives the settings of semi-synchronous replication the names that MariaDB
// has, and leaves them out if there is none.
func WithSemiSync(values map[string]string) map[string]string {
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

// Postgres returns the class of a PostgreSQL with these settings.
func Postgres(values map[string]string) store.Durability {
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
