//go:build linux

package redisstore

import (
	"testing"

	"sagabench/deploy/lab"
	"sagabench/store"
	"sagabench/store/disktest"
)

func TestStore_OnASlowDisk(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.RedisBinaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			server := lab.TestRedis(t, lab.RedisConfig{
				Binary: binary, SlowSync: true,
				Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"},
			})
			cfg := testConfig(server)
			disktest.Run(t, server, func(t testing.TB) store.Store { return open(t, cfg) })
		})
	}
}
