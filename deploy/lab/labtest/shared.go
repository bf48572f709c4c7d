package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/redisnodes"
)

// SharedRedis is a Redis and a Redis Cluster of three masters that the tests of a package
// share, each under a prefix of its own. Either starts when a test first asks for it. A
// test that changes a server starts its own.
type SharedRedis struct {
	M *testing.M // the tests of the package; set in TestMain

	mu      sync.Mutex
	server  *lab.Server
	cluster *redisnodes.Cluster
}

// Server returns the Redis.
func (r *SharedRedis) Server(t testing.TB) *lab.Server {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		var err error
		if r.server, err = lab.Redis.Start(context.Background(), lab.Config{}); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return r.server
}

// Cluster returns the Redis Cluster.
func (r *SharedRedis) Cluster(t testing.TB) *redisnodes.Cluster {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cluster == nil {
		var err error
		if r.cluster, err = redisnodes.StartCluster(context.Background(), redisnodes.ClusterConfig{Masters: 3}); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return r.cluster
}

// Run runs the tests, stops the servers, and returns the exit code.
func (r *SharedRedis) Run() int {
	code := r.M.Run()
	var errs []error
	if r.server != nil {
		errs = append(errs, r.server.Stop())
	}
	if r.cluster != nil {
		errs = append(errs, r.cluster.Stop())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "stop the servers that tests share:", err)
		return max(code, 1)
	}
	return code
}
