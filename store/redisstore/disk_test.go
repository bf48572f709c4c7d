//go:build linux

package redisstore

import (
	"testing"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store"
	"sagabench/store/disktest"
)

func TestStore_OnASlowDisk(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{
				Binary: binary, SlowSync: true,
				Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"},
			})
			cfg := testConfig(server)
			disktest.Run(t, server, func(t testing.TB) store.Store { return open(t, cfg) })
		})
	}
}
