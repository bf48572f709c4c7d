//go:build linux

package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
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
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{
			SlowSync: true, Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"},
		}})
		cfg := clusterConfig(cluster)
		disktest.Run(t, slowCluster{cluster}, func(t testing.TB) store.Store { return open(t, cfg) })
	})
}

// slowCluster is a cluster as a [disktest.Server].
type slowCluster struct{ *redisnodes.Cluster }

func (c slowCluster) each(do func(*lab.Server) error) error {
	var errs []error
	for _, node := range c.Nodes() {
		errs = append(errs, do(node))
	}
	return errors.Join(errs...)
}

func (c slowCluster) SlowSync(d time.Duration) error {
	return c.each(func(node *lab.Server) error { return node.SlowSync(d) })
}

func (c slowCluster) DelayedSyncs() (sum int64, err error) {
	err = c.each(func(node *lab.Server) error {
		n, err := node.DelayedSyncs()
		sum += n
		return err
	})
	return sum, err
}

func (c slowCluster) Kill() error { return c.each((*lab.Server).Kill) }

func (c slowCluster) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := c.each(func(node *lab.Server) error { return node.Restart(ctx) })
	return errors.Join(err, c.WaitReady(ctx))
}
