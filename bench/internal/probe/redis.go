package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sagabench/internal/tlsfiles"
)

// redisServer asks a Redis about itself, over one connection of its own whose
// bytes are counted.
type redisServer struct {
	client  *redis.Client
	timeout time.Duration
	scripts []string
	traffic traffic

	before, after *redisInfo
}

// redisInfo is what a Redis counted since it was started, without what the
// probe itself sent and got.
type redisInfo struct {
	runID    string
	cpu      float64 // seconds: all threads, and children that have ended (a rewrite of the AOF, a snapshot)
	bytesIn  int64   // from clients; replication is not in it
	bytesOut int64   // to clients
	memory   int64   // bytes in use, without buffers of replicas and the AOF
	removed  int64   // keys that expired or were evicted
	calls    map[string]int64
}

func newRedisServer(ctx context.Context, server Server, timeout time.Duration) (*redisServer, error) {
	url, files := tlsfiles.CutURL(server.URL)
	opt, err := redis.ParseURL(url)
	if err != nil {
		// The error may quote the URL, and with it the password.
		return nil, errors.New("the URL is not one of a Redis (redis://USER:PASSWORD@HOST:PORT/DB)")
	}
	if err := files.SetRedis(opt.TLSConfig); err != nil {
		return nil, err
	}
	r := &redisServer{timeout: timeout, scripts: server.Scripts}
	opt.PoolSize = 1
	opt.MaxRetries, opt.DialerRetries = -1, 1
	opt.DisableIdentity = true
	opt.ContextTimeoutEnabled = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	dial := redis.NewDialer(opt)
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countingConn{c, &r.traffic}, nil
	}
	r.client = redis.NewClient(opt)
	if _, err := r.info(ctx); err != nil {
		return nil, errors.Join(err, r.client.Close())
	}
	return r, nil
}

func (r *redisServer) close() error { return r.client.Close() }

func (r *redisServer) begin(ctx context.Context) (err error) {
	r.before, err = r.info(ctx)
	return err
}

func (r *redisServer) end(ctx context.Context) (err error) {
	r.after, err = r.info(ctx)
	return err
}

func (r *redisServer) used() storeUse {
	u := storeUse{oneCore: true}
	b, a := r.before, r.after
	switch {
	case b == nil || a == nil:
		return u
	case b.runID != a.runID:
		u.failures = append(u.failures, errRestarted)
		return u
	}
	u.cpu = difference(&b.cpu, &a.cpu)
	u.bytesIn = u.grown("bytes received", b.bytesIn, a.bytesIn)
	u.bytesOut = u.grown("bytes sent", b.bytesOut, a.bytesOut)
	u.calls = clientCalls(b.calls, a.calls, r.scripts)
	if a.removed != b.removed {
		u.fail("memory", errDeleted)
	} else {
		memory := a.memory - b.memory // it may shrink
		u.memory = &memory
	}
	return u
}

// info asks for everything at once: one INFO for all versions of Redis, which
// until 7.0 take no list of sections.
func (r *redisServer) info(ctx context.Context) (*redisInfo, error) {
	got := r.traffic.got.Load()
	fields, err := r.ask(ctx, "all")
	if err != nil {
		return nil, err
	}
	// Redis counts the bytes of a command when it reads it and those of a
	// reply when it has written it: this INFO's are in the former only.
	return parseInfo(fields, r.traffic.sent.Load(), got)
}

// cpu asks for no more than the CPU seconds.
func (r *redisServer) cpu(ctx context.Context) (*float64, error) {
	fields, err := r.ask(ctx, "cpu")
	if err != nil {
		return nil, err
	}
	seconds, err := infoCPU(fields)
	return &seconds, err
}

func (r *redisServer) ask(ctx context.Context, section string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	text, err := r.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("INFO %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

func parseInfo(fields map[string]string, sent, got int64) (*redisInfo, error) {
	n := numbers{fields: fields}
	info := &redisInfo{
		runID: fields["run_id"],
		// Since 7.0 the totals hold the bytes of replication as well.
		bytesIn:  n.whole("total_net_input_bytes") - n.optional("total_net_repl_input_bytes") - sent,
		bytesOut: n.whole("total_net_output_bytes") - n.optional("total_net_repl_output_bytes") - got,
		// The buffers of ordinary clients are left in: they are much the same at
		// both ends, and what Redis says of them is seconds old.
		memory:  n.whole("used_memory") - n.optional("mem_not_counted_for_evict") - n.optional("mem_replication_backlog"),
		removed: n.whole("expired_keys") + n.whole("evicted_keys"),
		calls:   map[string]int64{},
	}
	seconds, err := infoCPU(fields)
	n.err = errors.Join(n.err, err)
	info.cpu = seconds
	for name, value := range fields {
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		count, err := strconv.ParseInt(calls, 10, 64)
		n.err = errors.Join(n.err, err)
		info.calls[command] = count
	}
	if n.err != nil {
		return nil, fmt.Errorf("read INFO: %w", n.err)
	}
	return info, nil
}

func infoCPU(fields map[string]string) (seconds float64, err error) {
	for _, name := range []string{"used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children"} {
		x, err := strconv.ParseFloat(fields[name], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		seconds += x
	}
	return seconds, nil
}

// numbers reads whole numbers and keeps what was wrong with them.
type numbers struct {
	fields map[string]string
	err    error
}

func (n *numbers) whole(name string) int64 {
	x, err := strconv.ParseInt(n.fields[name], 10, 64)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("%s: %w", name, err))
	}
	return x
}

// optional is 0 where this version has no such field.
func (n *numbers) optional(name string) int64 {
	if n.fields[name] == "" {
		return 0
	}
	return n.whole(name)
}
