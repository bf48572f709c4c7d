package durability_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/store"
	"sagabench/store/sqlstore/durability"
)

func TestClass_FollowsFromTheSettings(t *testing.T) {
	t.Parallel()
	type values = map[string]string
	require.Equal(t, store.D3, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF"}))
	require.Equal(t, store.D3, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1"}))
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "0"}))
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "100"}))
	require.Equal(t, store.D2, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "2", "log_bin": "OFF"}))
	require.Equal(t, store.D2, durability.MySQL(values{}), "the lower class when it is not known")
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "innodb_flush_method": "nosync"}))
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "innodb_flush_method": "littlesync"}))
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", durability.RedoLog: "OFF"}))
	require.Equal(t, store.D3, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", durability.RedoLog: "ON", "innodb_doublewrite": "DETECT_AND_RECOVER"}))
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", durability.RedoLog: "ON", "innodb_doublewrite": "DETECT_ONLY"}))
	require.Equal(t, store.D1, durability.MySQL(values{"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "OFF"}))

	waits := values{
		"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1",
		"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_wait_point": "AFTER_SYNC", "rpl_semi_sync_master_wait_no_slave": "ON",
		"rpl_semi_sync_master_timeout": "18446744073709551615", "Rpl_semi_sync_master_status": "ON",
	}
	require.Equal(t, store.D4, durability.MySQL(waits))
	for name, value := range map[string]string{
		"rpl_semi_sync_master_enabled":       "OFF",
		"rpl_semi_sync_master_wait_point":    "AFTER_COMMIT", // shown to others before a replica has it
		"rpl_semi_sync_master_wait_no_slave": "OFF",
		"rpl_semi_sync_master_timeout":       "86400000", // a day
		"Rpl_semi_sync_master_status":        "OFF",      // it went on without
	} {
		without := maps.Clone(waits)
		without[name] = value
		require.Equal(t, store.D3, durability.MySQL(without), name)
		delete(without, name)
		require.Equal(t, store.D3, durability.MySQL(without), name)
	}
	ofMySQL := values{
		"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1",
		"rpl_semi_sync_source_enabled": "ON", "rpl_semi_sync_source_wait_point": "AFTER_SYNC", "rpl_semi_sync_source_wait_no_replica": "ON",
		"rpl_semi_sync_source_timeout": "4294967295", "Rpl_semi_sync_source_status": "ON", "rpl_semi_sync_source_trace_level": "32",
	}
	require.Equal(t, store.D4, durability.MySQL(durability.WithSemiSync(ofMySQL)))
	require.Len(t, durability.WithSemiSync(ofMySQL), 8)
	ofMySQL["rpl_semi_sync_source_enabled"] = "OFF"
	require.Len(t, durability.WithSemiSync(ofMySQL), 3)

	pg := func(fsync, commit, pages, standbys string) store.Durability {
		return durability.Postgres(values{
			"fsync": fsync, "synchronous_commit": commit, "full_page_writes": pages, "synchronous_standby_names": standbys, "max_wal_senders": "10",
		})
	}
	require.Equal(t, store.D3, pg("on", "on", "on", ""))
	require.Equal(t, store.D3, pg("on", "local", "on", "*"))
	require.Equal(t, store.D4, pg("on", "on", "on", "*"))
	require.Equal(t, store.D4, pg("on", "remote_apply", "on", "*"))
	require.Equal(t, store.D4, pg("on", "remote_write", "on", "*"))
	require.Equal(t, store.D3, pg("on", "remote_write", "on", ""))
	require.Equal(t, store.D3, durability.Postgres(values{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "synchronous_standby_names": "*", "max_wal_senders": "0",
	}), "without senders nobody is waited for")
	require.Equal(t, store.D2, pg("on", "off", "on", "*"))
	require.Equal(t, store.D1, pg("on", "on", "off", ""))
	require.Equal(t, store.D1, pg("off", "on", "on", ""))
}
