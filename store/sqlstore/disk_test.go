//go:build linux

package sqlstore

import (
	"maps"
	"testing"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store"
	"sagabench/store/disktest"
)

// slowSync starts a server whose syncs can be slowed.
func (k *kind) slowSync(t testing.TB, settings map[string]string) *lab.Server {
	t.Helper()
	if k.name == "postgres" {
		return labtest.Start(t, lab.Postgres, lab.Config{Settings: settings, SlowSync: true})
	}
	// Statistics of a new table are written under a lock that all sessions wait for.
	all := map[string]string{"innodb_stats_auto_recalc": "OFF"}
	maps.Copy(all, settings)
	return labtest.Start(t, lab.MySQL, lab.Config{Binary: k.binary, Settings: all, SlowSync: true})
}

func TestStore_OnASlowDisk(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		ways := map[string]map[string]string{"alone": nil}
		if k.name == "mysql" {
			ways["binlog"] = map[string]string{"log_bin": "binlog", "server_id": "1", "sync_binlog": "1"}
		}
		for way, settings := range ways {
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				server := k.slowSync(t, settings)
				cfg := configOf(server)
				disktest.Run(t, server, func(t testing.TB) store.Store { return openOnly(t, cfg) })
			})
		}
	})
}
