package redisnodes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"sagabench/deploy/lab"
)

// MasterName is the name by which sentinels know the master.
const MasterName = "mymaster"

const (
	sentinelCount  = 3
	sentinelQuorum = 2
)

// Sentinel is a running Redis with a replica, and three sentinels that make the replica
// the master if the master is lost. Its methods may be called concurrently.
type Sentinel struct{ nodes, sentinels []*node }

// StartSentinel starts a master, a replica and three sentinels. It returns when the
// replica has the data of its master, and all sentinels know each other and both nodes.
// The settings are those of the two nodes, and may be all but port and requirepass. In
// Config.Dir, each server has a directory of its own.
//
// Sentinels take a node for down after 2 s without an answer: a failover takes about 4 s.
// With Redis' own default it would take 30 s longer.
func StartSentinel(ctx context.Context, cfg lab.Config) (*Sentinel, error) {
	s := &Sentinel{}
	if err := s.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Redis with sentinels: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Sentinel) start(ctx context.Context, cfg lab.Config) error {
	if cfg.Settings["requirepass"] != "" {
		return errors.New("settings: requirepass: sentinels would write it without quotes")
	}
	settings, err := sharedSettings(cfg.Settings)
	if err != nil {
		return err
	}
	cfg.Settings = settings
	// Sentinels look for new replicas every 10 s only.
	if s.nodes, err = startReplicated(ctx, cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	master := s.nodes[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	directives := []string{
		fmt.Sprintf("monitor %s %s %s %d", MasterName, host, port, sentinelQuorum),
		fmt.Sprintf("auth-pass %s %s", MasterName, master.Password()),
		fmt.Sprintf("down-after-milliseconds %s %d", MasterName, downAfter.Milliseconds()),
		fmt.Sprintf("failover-timeout %s %d", MasterName, 2*downAfter.Milliseconds()), // a lost vote is repeated after twice that
	}
	cfg.Settings = map[string]string{
		"requirepass": rand.Text(), "sentinel": strings.Join(directives, "\n"),
		"bind": cmp.Or(settings["bind"], lab.RedisSentinel.Host(nil)),
	}
	for i := range sentinelCount {
		n, err := startNode(ctx, lab.RedisSentinel, cfg, "sentinel-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		s.sentinels = append(s.sentinels, n)
	}
	return s.WaitReady(ctx)
}

// Nodes returns the two nodes, first the one that was started as the master. To stop them,
// use Stop.
func (s *Sentinel) Nodes() []*lab.Server { return servers(s.nodes) }

// Sentinels returns the sentinels. They have one password, which is not that of the nodes.
func (s *Sentinel) Sentinels() []*lab.Server { return servers(s.sentinels) }

// Stop ends all servers for good, and also paused ones: see [lab.Server.Stop].
func (s *Sentinel) Stop() error {
	return errors.Join(stop(s.sentinels), stop(s.nodes)) // else sentinels would see a failure
}

// Master returns the node that all running sentinels take for the master.
func (s *Sentinel) Master(ctx context.Context) (*lab.Server, error) {
	n, err := s.master(ctx)
	if err != nil {
		return nil, err
	}
	return n.Server, nil
}

func (s *Sentinel) master(ctx context.Context) (master *node, err error) {
	for _, sentinel := range s.sentinels {
		if !sentinel.IsRunning() {
			continue
		}
		known, err := sentinel.monitored(ctx)
		if err != nil {
			return nil, err
		}
		n, err := s.at(net.JoinHostPort(known["ip"], known["port"]))
		switch {
		case err != nil:
			return nil, err
		case master == nil:
			master = n
		case master != n:
			return nil, fmt.Errorf("one sentinel takes %s for the master, another one %s", master.Addr(), n.Addr())
		}
	}
	if master == nil {
		return nil, errors.New("no sentinel runs")
	}
	return master, nil
}

// WaitReady waits until all servers run, the sentinels know each other, agree on the master
// and could replace it, and the other node has the data of the master and receives its
// writes.
func (s *Sentinel) WaitReady(ctx context.Context) error {
	if err := lab.Poll(ctx, s.ready); err != nil {
		return fmt.Errorf("the sentinels are not ready: %w", err)
	}
	return nil
}

func (s *Sentinel) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, sentinel := range s.sentinels {
		known, err := sentinel.monitored(ctx)
		if err != nil {
			return err
		}
		for key, want := range map[string]string{
			"flags": "master", "num-slaves": strconv.Itoa(len(s.nodes) - 1), "num-other-sentinels": strconv.Itoa(sentinelCount - 1),
		} {
			if known[key] != want {
				return fmt.Errorf("SENTINEL MASTER of %s: %s is %q, not %s", sentinel.Addr(), key, known[key], want)
			}
		}
		if err := sentinel.client.Do(ctx, "SENTINEL", "CKQUORUM", MasterName).Err(); err != nil {
			return fmt.Errorf("SENTINEL CKQUORUM of %s: %w", sentinel.Addr(), err)
		}
		replicas := redis.NewMapStringStringSliceCmd(ctx, "SENTINEL", "REPLICAS", MasterName)
		if err := sentinel.client.Process(ctx, replicas); err != nil {
			return fmt.Errorf("SENTINEL REPLICAS of %s: %w", sentinel.Addr(), err)
		}
		for _, replica := range replicas.Val() {
			if replica["flags"] != "slave" || replica["master-link-status"] != "ok" {
				return fmt.Errorf("SENTINEL REPLICAS of %s: %s is %s, its link %s",
					sentinel.Addr(), replica["name"], replica["flags"], replica["master-link-status"])
			}
		}
	}
	master, err := s.master(ctx)
	if err != nil {
		return err
	}
	for _, n := range s.nodes {
		if n == master {
			continue
		}
		if err := n.follows(ctx); err != nil {
			return err
		}
	}
	return nil
}

// WaitTakeover waits until all running sentinels take another node than lost for the
// master, and that node is one.
func (s *Sentinel) WaitTakeover(ctx context.Context, lost *lab.Server) error {
	err := lab.Poll(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		master, err := s.master(ctx)
		if err != nil {
			return err
		}
		if master.Server == lost {
			return errors.New("the sentinels take it for the master")
		}
		replication, err := master.info(ctx, "replication")
		if err == nil && replication["role"] != "master" {
			err = fmt.Errorf("%s is a %s", master.Addr(), replication["role"])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("nobody took over from %s: %w", lost.Addr(), err)
	}
	return nil
}

// monitored returns what a sentinel knows of the master.
func (n *node) monitored(ctx context.Context) (map[string]string, error) {
	known := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", MasterName)
	if err := n.client.Process(ctx, known); err != nil {
		return nil, fmt.Errorf("SENTINEL MASTER of %s: %w", n.Addr(), err)
	}
	return known.Val(), nil
}

func (s *Sentinel) at(addr string) (*node, error) {
	for _, n := range s.nodes {
		if n.Addr() == addr {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the sentinels know a node %q that was not started with them", addr)
}
