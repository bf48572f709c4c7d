package redisops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/rueidis"
)

// client is a library with a way to send. It may be used concurrently.
type client interface {
	// do sends a command for each key, waits for all replies and checks them. err is the
	// first of the errors.
	do(ctx context.Context, keys []string) (failed int, err error)
	close() error
}

// The clients, by library and dispatch.
const (
	clientGoRedis           = "go-redis"             // a connection per call
	clientGoRedisPipeline   = "go-redis-pipeline"    // the commands of a request in a pipeline
	clientGoRedisOrdered    = "go-redis-auto"        // AutoPipeline, one batch after the other
	clientGoRedisUnordered  = "go-redis-unordered"   // AutoPipeline, up to 4 batches at once
	clientGoRedisFullDuplex = "go-redis-full-duplex" // AutoPipeline, sends while it receives
	clientRueidis           = "rueidis"              // automatic pipelining, its default
	clientRueidisPerCall    = "rueidis-per-call"     // a connection per call
	clientRueidisPipeline   = "rueidis-pipeline"     // the commands of a request in a pipeline

	// ClientRedisBenchmark is the program, as a reference.
	ClientRedisBenchmark = "redis-benchmark"
)

// LatencyFrom says from when the latencies of a client count. It is empty for the Go clients:
// theirs count from before a request is written, so those of redis-benchmark leave out a wait.
func LatencyFrom(client string) string {
	if client == ClientRedisBenchmark {
		return "the write of a request"
	}
	return ""
}

// Clients lists the clients.
func Clients() []string {
	return []string{
		clientGoRedis, clientGoRedisPipeline, clientGoRedisOrdered, clientGoRedisUnordered, clientGoRedisFullDuplex,
		clientRueidis, clientRueidisPerCall, clientRueidisPipeline, ClientRedisBenchmark,
	}
}

// pipelines reports whether a client sends the commands of a request together.
func pipelines(client string) bool {
	return slices.Contains([]string{clientGoRedisPipeline, clientRueidisPipeline, ClientRedisBenchmark}, client)
}

// target is the server, or the nodes of a cluster.
type target struct {
	addrs              []string
	username, password string
	db                 int
}

// parseTarget reads the URLs. Its error does not quote them: they have the password.
func parseTarget(urls []string) (t target, err error) {
	for i, url := range urls {
		o, err := redis.ParseURL(url)
		switch {
		case err != nil:
			return t, errors.New("urls: want redis://[user:password@]host:port[/db]")
		case o.TLSConfig != nil:
			return t, fmt.Errorf("urls: %s: operations are not measured over TLS", o.Addr)
		case i > 0 && (o.Username != t.username || o.Password != t.password):
			return t, errors.New("urls: the nodes of a cluster must have the same user and password")
		case len(urls) > 1 && o.DB != 0:
			return t, errors.New("urls: a cluster has database 0 only")
		}
		t.addrs = append(t.addrs, o.Addr)
		t.username, t.password, t.db = o.Username, o.Password, o.DB
	}
	return t, nil
}

// goRedisClient is a client of one server or of a cluster.
type goRedisClient interface {
	redis.Cmdable
	AutoPipelineWithOptions(*redis.AutoPipelineOptions) (*redis.AutoPipeliner, error)
	Close() error
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// goRedis connects with go-redis. A nil dial is its own.
func (t target) goRedis(dial dialFunc, conns int) goRedisClient {
	if len(t.addrs) > 1 {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: t.addrs, Username: t.username, Password: t.password,
			Dialer: dial, PoolSize: conns, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
	}
	return redis.NewClient(&redis.Options{
		Addr: t.addrs[0], Username: t.username, Password: t.password, DB: t.db,
		Dialer: dial, PoolSize: conns, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// newClient connects with one of Clients but redis-benchmark.
func newClient(name string, t target, conns int, w *workload, wire *wire) (client, error) {
	switch name {
	case clientRueidis, clientRueidisPerCall, clientRueidisPipeline:
		c, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: t.addrs, ForceSingleClient: len(t.addrs) == 1,
			Username: t.username, Password: t.password, SelectDB: t.db,
			AlwaysRESP2: true, DisableCache: true, DisableRetry: true, ClientSetInfo: rueidis.DisableClientSetInfo,
			DisableAutoPipelining: name != clientRueidis,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return wire.dial(ctx, "tcp", addr)
			},
		})
		if err != nil {
			return nil, err
		}
		return &rueidisClient{w: w, client: c, pipeline: name == clientRueidisPipeline}, nil
	}
	c := t.goRedis(wire.dial, conns)
	g := &goRedis{w: w, client: c, over: c, pipeline: name == clientGoRedisPipeline}
	options := map[string]*redis.AutoPipelineOptions{
		clientGoRedisOrdered:    {},
		clientGoRedisUnordered:  {Unordered: true, MaxConcurrentBatches: 4},
		clientGoRedisFullDuplex: {FullDuplex: true},
	}[name]
	if options == nil {
		return g, nil
	}
	auto, err := c.AutoPipelineWithOptions(options)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	g.over, g.auto = auto, auto
	return g, nil
}

// goRedis sends with go-redis.
type goRedis struct {
	w        *workload
	client   goRedisClient
	over     redis.Cmdable // the client, or auto
	auto     *redis.AutoPipeliner
	pipeline bool
}

func (g *goRedis) do(ctx context.Context, keys []string) (failed int, err error) {
	if !g.pipeline {
		for _, key := range keys {
			failed, err = add(failed, err, g.w.checkGoRedis(g.w.goRedis(ctx, g.over, key, g.w)))
		}
		return failed, err
	}
	pipe := g.client.Pipeline()
	for _, key := range keys {
		g.w.goRedis(ctx, pipe, key, g.w)
	}
	cmds, _ := pipe.Exec(ctx) // each command has its error
	for _, cmd := range cmds {
		failed, err = add(failed, err, g.w.checkGoRedis(cmd))
	}
	return failed, err
}

// add counts an error, and keeps the first.
func add(failed int, first, err error) (int, error) {
	switch {
	case err == nil:
		return failed, first
	case first == nil:
		first = err
	}
	return failed + 1, first
}

func (g *goRedis) close() error {
	var err error
	if g.auto != nil {
		err = g.auto.Close()
	}
	return errors.Join(err, g.client.Close())
}

// rueidisClient sends with rueidis.
type rueidisClient struct {
	w        *workload
	client   rueidis.Client
	pipeline bool
}

func (r *rueidisClient) do(ctx context.Context, keys []string) (failed int, err error) {
	if !r.pipeline {
		for _, key := range keys {
			failed, err = add(failed, err, r.w.checkRueidis(r.client.Do(ctx, r.w.rueidis(r.client.B(), key, r.w))))
		}
		return failed, err
	}
	commands := make([]rueidis.Completed, len(keys))
	for i, key := range keys {
		commands[i] = r.w.rueidis(r.client.B(), key, r.w)
	}
	for _, result := range r.client.DoMulti(ctx, commands...) {
		failed, err = add(failed, err, r.w.checkRueidis(result))
	}
	return failed, err
}

func (r *rueidisClient) close() error {
	r.client.Close()
	return nil
}
