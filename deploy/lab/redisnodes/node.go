package redisnodes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sagabench/deploy/lab"
)

const (
	startTimeout = 30 * time.Second // of all nodes together
	askTimeout   = 2 * time.Second  // of one question: a paused node does not answer

	// downAfter is how long a node must not answer until the others take it for failed. The
	// default is 15 s in Redis Cluster and 30 s in Sentinel, which tests would spend waiting.
	// On a busy machine a node may get no CPU for a second, and must not be replaced then.
	downAfter = 2 * time.Second
)

// node is a server with a client of its own.
type node struct {
	*lab.Server
	client  *redis.Client
	id      string // in a cluster
	busPort string // the port of the cluster's bus that it announces; empty: its own
}

// startNode starts a server. In Config.Dir, it has the directory name.
func startNode(ctx context.Context, kind *lab.Kind, cfg lab.Config, name string) (*node, error) {
	if cfg.Dir != "" {
		cfg.Dir = filepath.Join(cfg.Dir, name)
	}
	s, err := kind.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &node{Server: s, client: redis.NewClient(&redis.Options{
		Addr: s.Addr(), Password: s.Password(), Protocol: 2, DisableIdentity: true, PoolSize: 2,
		MaxRetries: -1, DialerRetries: 1, ReadTimeout: 2 * migrateTimeout, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}, nil
}

// sharedSettings returns the settings of nodes that replicate each other: one password,
// and those of own.
func sharedSettings(own map[string]string) (map[string]string, error) {
	if _, ok := own["port"]; ok {
		return nil, errors.New("settings: port: its nodes cannot share one")
	}
	settings := map[string]string{
		"repl-diskless-sync-delay": "0", // Redis 7 waits 5 s for more replicas before it sends its data
		"repl-ping-replica-period": "1", // and CLUSTER SLOTS lacks a replica for 10 s, until the first ping
	}
	maps.Copy(settings, own)
	settings["requirepass"] = cmp.Or(own["requirepass"], rand.Text())
	settings["masterauth"] = settings["requirepass"]
	return settings, nil
}

// info returns a section of INFO by key.
func (n *node) info(ctx context.Context, section string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := n.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("INFO of %s: %w", n.Addr(), err)
	}
	return fields(text), nil
}

// fields splits the lines key:value of INFO and CLUSTER INFO.
func fields(text string) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		values[key] = value
	}
	return values
}

// follows returns nil if the node has the data of its master and receives its writes. If
// it keeps a log, it has written that, too: until then it is not durable, and ignores the
// signal to stop.
func (n *node) follows(ctx context.Context) error {
	replication, err := n.info(ctx, "replication")
	if err != nil {
		return err
	}
	if replication["master_link_status"] != "up" {
		return fmt.Errorf("%s is no replica with its data: role %s, link %s", n.Addr(), replication["role"], replication["master_link_status"])
	}
	log, err := n.info(ctx, "persistence")
	if err == nil && (log["aof_rewrite_in_progress"] == "1" || log["aof_rewrite_scheduled"] == "1") {
		err = fmt.Errorf("%s still writes its first log", n.Addr())
	}
	return err
}

func servers(nodes []*node) []*lab.Server {
	all := make([]*lab.Server, len(nodes))
	for i, n := range nodes {
		all[i] = n.Server
	}
	return all
}

// stop ends all nodes at once: a master waits for the end of its replicas, or until they
// have all data.
func stop(nodes []*node) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			_ = n.client.Close() // may be closed already
			errs[i] = n.Stop()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
