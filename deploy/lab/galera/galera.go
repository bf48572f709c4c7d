// Package galera starts clusters of MariaDB Galera, of servers of package lab, and waits
// until their nodes are ready. Linux only, as Galera is.
package galera

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"sagabench/deploy/lab"
)

const (
	startTimeout = 2 * time.Minute // of all nodes together, one after the other
	askTimeout   = 2 * time.Second // of one question: a paused node does not answer
	maxNodes     = 16
)

// Config says what a cluster consists of.
type Config struct {
	Nodes int

	// SuspectTimeout is how long a node must be silent until the others go on without it:
	// evs.suspect_timeout. The whole cluster waits meanwhile. 0 is Galera's default, 5 s.
	SuspectTimeout time.Duration

	// Node is how each node is started. Its settings may be all but port and those that
	// make the cluster. In Dir, each node has a directory of its own.
	Node lab.Config
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	nodes []*lab.Server
	dbs   []*sql.DB // by node
}

// Start starts a cluster. It returns when all nodes take writes.
//
// A node that is started again, with [lab.Server.Restart], gets from another one what it
// missed or, if it was killed, all data; the other one takes no writes meanwhile. If all
// nodes are killed, none of them makes a cluster by itself.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Galera cluster: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, cfg Config) error {
	if cfg.Nodes < 1 || cfg.Nodes > maxNodes {
		return fmt.Errorf("%d nodes, must be 1 to %d", cfg.Nodes, maxNodes)
	}
	provider, err := findProvider()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Galera needs ports of its own, also later when a node starts again. So each node has
	// its own address of the loopback interface, and on it the default ports.
	network := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256))
	var hosts []string
	for i := range cfg.Nodes {
		hosts = append(hosts, network+strconv.Itoa(1+i))
	}
	for i, host := range hosts {
		node := cfg.Node
		node.Settings = map[string]string{
			"wsrep_on":                 "ON",
			"wsrep_provider":           provider,
			"wsrep_cluster_name":       network,
			"wsrep_cluster_address":    "gcomm://" + strings.Join(hosts, ","),
			"wsrep_node_address":       host,
			"wsrep_node_name":          "node-" + strconv.Itoa(i),
			"wsrep_provider_options":   providerOptions(host, cfg.SuspectTimeout),
			"wsrep_sst_method":         "rsync",
			"binlog_format":            "ROW",
			"innodb_autoinc_lock_mode": "2",
			"innodb_buffer_pool_size":  "32M", // else each node would have 128M
			"innodb_log_file_size":     "16M", // which each node copies from another
		}
		if i == 0 {
			node.Settings["wsrep_new_cluster"] = ""
		}
		maps.Copy(node.Settings, cfg.Node.Settings)
		if node.Dir != "" {
			node.Dir = filepath.Join(node.Dir, "node-"+strconv.Itoa(i))
		}
		server, err := lab.MySQL.Start(ctx, node)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, server)
		client, err := mysql.ParseDSN(server.DSN(""))
		if err != nil {
			return err
		}
		client.Logger = &mysql.NopLogger{} // it would report each connection that a killed node cut
		// A node that was paused does not answer by what it knew before.
		client.Params = map[string]string{"wsrep_sync_wait": "1"}
		connector, err := mysql.NewConnector(client)
		if err != nil {
			return err
		}
		c.dbs = append(c.dbs, sql.OpenDB(connector))
	}
	return c.WaitReady(ctx)
}

// providers are where distributions have Galera's library.
var providers = []string{"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib/libgalera_smm.so"}

func findProvider() (string, error) {
	for _, path := range providers {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("libgalera_smm.so is %w: it is in none of %s; install it (Debian, Ubuntu: apt-get install galera-4)",
		lab.ErrNotInstalled, strings.Join(providers, ", "))
}

func providerOptions(host string, suspect time.Duration) string {
	options := "gmcast.listen_addr=tcp://" + host
	if suspect > 0 {
		// Galera requires these proportions.
		options += fmt.Sprintf(";evs.keepalive_period=PT%gS;evs.suspect_timeout=PT%gS;evs.install_timeout=PT%[2]gS;evs.inactive_timeout=PT%gS",
			min(suspect.Seconds()/4, 1), suspect.Seconds(), 3*suspect.Seconds())
	}
	return options
}

// Nodes returns the nodes. To stop them, use Stop.
func (c *Cluster) Nodes() []*lab.Server { return c.nodes }

// Stop ends all nodes for good, and also paused ones: see [lab.Server.Stop].
func (c *Cluster) Stop() error {
	var errs []error
	for _, db := range c.dbs {
		errs = append(errs, db.Close())
	}
	// A node that stops in order waits for the others. Nobody needs its files.
	for _, node := range c.nodes {
		_ = node.Kill() // it may have been stopped
		errs = append(errs, node.Stop())
	}
	return errors.Join(errs...)
}

// WaitReady waits until all nodes whose process runs take writes, have all data, and agree
// that they are the cluster.
func (c *Cluster) WaitReady(ctx context.Context) error {
	err := lab.Poll(ctx, func(ctx context.Context) error {
		var running []int
		for i, node := range c.nodes {
			if node.IsRunning() {
				running = append(running, i)
			}
		}
		for _, i := range running {
			if err := c.ready(ctx, i, len(running)); err != nil {
				return fmt.Errorf("%s: %w", c.nodes[i].Addr(), err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the cluster is not ready: %w", err)
	}
	return nil
}

// ready returns nil if a node takes writes and sees so many nodes.
func (c *Cluster) ready(ctx context.Context, i, nodes int) error {
	status, err := c.Status(ctx, i)
	if err != nil {
		return err
	}
	for name, want := range map[string]string{
		"wsrep_cluster_status": "Primary", "wsrep_cluster_size": strconv.Itoa(nodes),
		"wsrep_ready": "ON", "wsrep_local_state_comment": "Synced",
	} {
		if status[name] != want {
			return fmt.Errorf("%s is %q, not %s", name, status[name], want)
		}
	}
	return nil
}

// Status returns what node i says of the cluster: its status variables wsrep_….
func (c *Cluster) Status(ctx context.Context, i int) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	rows, err := c.dbs[i].QueryContext(ctx, `SHOW GLOBAL STATUS LIKE 'wsrep\_%'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	status := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		status[name] = value
	}
	return status, rows.Err()
}
