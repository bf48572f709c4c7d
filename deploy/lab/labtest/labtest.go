// Package labtest starts servers for tests.
package labtest

import (
	"testing"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/galera"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/deploy/lab/sqlnodes"
)

// Start starts a server for a test and stops it when the test ends. If the binary is not
// installed, Start fails the test and says what to install: a test that skips shows
// nothing.
func Start(t testing.TB, kind *lab.Kind, cfg lab.Config) *lab.Server {
	t.Helper()
	server, err := kind.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop the server: %v; its log ends with: %s", err, server.Log())
		}
	})
	return server
}

// StartCluster starts a Redis Cluster for a test like Start.
func StartCluster(t testing.TB, cfg redisnodes.ClusterConfig) *redisnodes.Cluster {
	t.Helper()
	cluster, err := redisnodes.StartCluster(t.Context(), cfg)
	stopAfter(t, cluster, err)
	return cluster
}

// StartSentinel starts a Redis with a replica and sentinels for a test like Start.
func StartSentinel(t testing.TB, node lab.Config) *redisnodes.Sentinel {
	t.Helper()
	sentinel, err := redisnodes.StartSentinel(t.Context(), node)
	stopAfter(t, sentinel, err)
	return sentinel
}

// StartReplicated starts a MariaDB or PostgreSQL with a replica for a test like Start.
func StartReplicated(t testing.TB, kind *lab.Kind, cfg lab.Config) *sqlnodes.Replicated {
	t.Helper()
	servers, err := sqlnodes.Start(t.Context(), kind, cfg)
	stopAfter(t, servers, err)
	return servers
}

// StartGalera starts a Galera cluster for a test like Start.
func StartGalera(t testing.TB, cfg galera.Config) *galera.Cluster {
	t.Helper()
	cluster, err := galera.Start(t.Context(), cfg)
	stopAfter(t, cluster, err)
	return cluster
}

// stopAfter stops what was started when the test ends.
func stopAfter(t testing.TB, started interface{ Stop() error }, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Errorf("stop the nodes: %v", err)
		}
	})
}
