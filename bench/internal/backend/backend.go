// Package backend knows what the bench needs of each store beside how it is opened: how
// its server is started and with which settings, and how it is asked what it costs.
//
// Costs come from INFO of a Redis, of a Redis Cluster from that of each node, from the
// status variables of a MariaDB or MySQL, and from the statistics of a PostgreSQL. Those of a
// server that was started with a replica are the sum over both. SQL servers do not say how much CPU they use, so
// their processes are read if they run on this machine, with those that have ended.
// What a server wrote to disk is that of its processes on this machine; a Redis or MariaDB
// elsewhere is asked. Lock waits are those that a MariaDB or MySQL adds up when they end.
//
// PostgreSQL counts neither the bytes nor the statements of its clients. Its sessions
// report their syncs late (measured: once a second while busy, ten seconds after they
// fell idle); what is missing is derived from the position of the log, which is known at
// once. Its syncs are those of the log. MariaDB's are all that it makes, which agreed to
// within one with what strace saw.
package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/sample"
	"sagabench/deploy/lab"
	"sagabench/store/open"
)

// backends describes the stores that have a server. Others are embedded.
var backends = map[string]backend{
	open.Redis: {
		Kind:         lab.Redis,
		fileSettings: []string{"dir"},
		open:         openRedis,
	},
	open.MySQL: {
		Kind:         lab.MySQL,
		fileSettings: []string{"datadir", "innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "innodb_doublewrite_dir"},
		hyphens:      true,
		open:         openMySQL,
	},
	open.Postgres: {
		Kind:         lab.Postgres,
		fileSettings: []string{"data_directory"},
		open:         openPostgres,
	},
}

type backend struct {
	*lab.Kind
	fileSettings []string // those that move files out of the server's directory
	hyphens      bool     // names of settings may have hyphens in place of underscores
	open         func(context.Context, Server) (sample.Store, error)
}

// serverSetting returns the name of a setting as the server has it. It refuses one that moves
// the server's files: their file system is a part of the result.
func serverSetting(driver, name string) (string, error) {
	b := backends[driver]
	if b.hyphens {
		name = strings.ReplaceAll(name, "-", "_")
	}
	if slices.Contains(b.fileSettings, strings.ToLower(name)) {
		return "", fmt.Errorf("%s: where its files are is not to be set, for their file system is a part of the result: set TMPDIR", name)
	}
	return name, nil
}

// Server is a store's server to be sampled.
type Server struct {
	Driver string // others than those above are not sampled
	URL    string // of a Redis Cluster that of any node: all are sampled
	Local  bool   // it runs on this machine; of the nodes of a cluster, their addresses say it
	PIDs   []int  // of the servers that were started for it, of each the process that started its others; else it is the one that listens on the port
	Schema string // where an SQL store has its tables

	Replicas []string // URLs of the replicas of one server that was started with them; PIDs has theirs after its own
}

// timeout is for one question to a server.
const timeout = 5 * time.Second

// Sampler returns what connects to the server; nil if there is none.
func Sampler(s Server) func(context.Context) (sample.Store, error) {
	b, ok := backends[s.Driver]
	if !ok {
		return nil
	}
	return func(ctx context.Context) (sample.Store, error) {
		open := b.open
		if len(s.Replicas) > 0 {
			open = b.openReplicated
		}
		store, err := open(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", s.Driver, err)
		}
		return store, nil
	}
}
