package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cluster is a running Redis Cluster of masters without replicas. Its methods may be
// called concurrently.
type Cluster struct{ servers []*Server }

const (
	redisSlots  = 16384
	maxMasters  = 100
	joinTimeout = 30 * time.Second // nodes wait 2 s before they serve
	joinPause   = 20 * time.Millisecond
)

// StartCluster starts a Redis Cluster with the slots shared out evenly, and waits until
// every node serves all slots. The settings are those of each node; all nodes have one
// password. It refuses settings that nodes cannot share: port. With Config.Dir, each node
// has a directory in it.
func StartCluster(ctx context.Context, cfg Config, masters int) (_ *Cluster, err error) {
	if masters < 1 || masters > maxMasters {
		return nil, fmt.Errorf("start a Redis Cluster: %d masters, must be 1 to %d", masters, maxMasters)
	}
	if _, ok := cfg.Settings["port"]; ok {
		return nil, errors.New("start a Redis Cluster: settings: port: its nodes cannot share one")
	}
	c := &Cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a Redis Cluster: %w", err), c.Stop())
		}
	}()
	settings := clusterSettings(cfg.Settings)
	for i := range masters {
		node := cfg
		node.Settings = settings
		if cfg.Dir != "" {
			node.Dir = filepath.Join(cfg.Dir, "node-"+strconv.Itoa(i))
		}
		s, err := Redis.Start(ctx, node)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	return c, c.join(ctx)
}

func clusterSettings(own map[string]string) map[string]string {
	password := own["requirepass"]
	if password == "" {
		password = newPassword()
	}
	settings := map[string]string{
		"cluster-enabled":     "yes",
		"cluster-announce-ip": dialHost(own[Redis.listenSetting]), // else a node learns it from others
	}
	maps.Copy(settings, own)
	settings["requirepass"], settings["masterauth"] = password, redisQuote(password)
	return settings
}

// join gives each node its slots, makes the nodes known to each other, and waits until
// they agree.
func (c *Cluster) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	first := c.servers[0]
	for i, s := range c.servers {
		slots := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * redisSlots / len(c.servers); slot < (i+1)*redisSlots/len(c.servers); slot++ {
			slots = append(slots, strconv.Itoa(slot))
		}
		commands := [][]string{
			slots,
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)}, // nodes with the same one would have to settle it
		}
		if s != first {
			commands = append(commands, []string{"CLUSTER", "MEET", first.host, strconv.Itoa(first.port)})
		}
		for _, command := range commands {
			if _, err := askRedis(ctx, s, command...); err != nil {
				return err
			}
		}
	}
	pause := time.NewTicker(joinPause)
	defer pause.Stop()
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (%w)", ctx.Err(), err)
		case <-pause.C:
		}
	}
}

// ready returns an error unless every node knows all others and serves all slots.
func (c *Cluster) ready(ctx context.Context) error {
	for _, s := range c.servers {
		info, err := askRedis(ctx, s, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		fields := strings.Fields(info)
		for _, want := range []string{
			"cluster_state:ok", "cluster_slots_ok:" + strconv.Itoa(redisSlots),
			fmt.Sprintf("cluster_known_nodes:%d", len(c.servers)), fmt.Sprintf("cluster_size:%d", len(c.servers)),
		} {
			if !slices.Contains(fields, want) {
				return fmt.Errorf("CLUSTER INFO of %s: no %s", s.Addr(), want)
			}
		}
	}
	return nil
}

// Servers returns the nodes, by slots. To stop the cluster, use Stop.
func (c *Cluster) Servers() []*Server { return slices.Clone(c.servers) }

// URLs returns the addresses of the nodes with scheme and password, by slots.
func (c *Cluster) URLs() (urls []string) {
	for _, s := range c.servers {
		urls = append(urls, s.URL())
	}
	return urls
}

// Stop ends all nodes for good: see [Server.Stop].
func (c *Cluster) Stop() error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}
