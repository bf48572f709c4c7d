package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sagabench/bench/internal/sample"
	"sagabench/lua"
	"sagabench/store/redisstore/redisconn"
)

// redisEngine asks a Redis, over one connection whose bytes are counted.
type redisEngine struct {
	client  *redis.Client
	traffic traffic
}

// openRedis samples a Redis, or all nodes of the Redis Cluster that it is in.
func openRedis(ctx context.Context, server Server) (sample.Store, error) {
	at, err := parseRedisURL(ctx, server.URL)
	if err != nil {
		return nil, err
	}
	if at.sentinel {
		host, _, _ := net.SplitHostPort(at.addresses[0])
		server.Local = Local(host)
	}
	var errs []error
	for _, address := range at.addresses {
		one, err := openRedisServer(ctx, server, at.options, address)
		switch {
		case err != nil:
			errs = append(errs, err)
		case one.cluster:
			return openRedisCluster(ctx, server, at.options, one, address)
		default:
			return one, nil
		}
	}
	return nil, errors.Join(errs...)
}

// openRedisServer samples one server.
func openRedisServer(ctx context.Context, server Server, options redis.Options, address string) (*redisSampler, error) {
	r := &redisEngine{}
	options.Addr = address
	options.PoolSize = 1
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DisableIdentity = true
	options.ContextTimeoutEnabled = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.Dialer = r.traffic.counting(redis.NewDialer(&options))
	r.client = redis.NewClient(&options)
	fields, err := r.info(ctx, "all")
	if err == nil {
		_, err = parseInfo(fields, 0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	if len(server.PIDs) > 1 { // which of them it is, it says itself
		pid, _ := strconv.Atoi(fields["process_id"])
		server.PIDs = slices.DeleteFunc(slices.Clone(server.PIDs), func(other int) bool { return other != pid })
	}
	_, port, _ := net.SplitHostPort(address) // it has just been dialed
	n, _ := strconv.Atoi(port)
	found := findProcess(ctx, server, n, "redis-server", "valkey-server")
	settings, _ := r.client.ConfigGet(ctx, "appendfsync").Result() // managed servers refuse
	return &redisSampler{
		sampler: newSampler(ctx, r, found), redis: r, cluster: fields["cluster_enabled"] == "1",
		appendfsync: settings["appendfsync"],
	}, nil
}

// redisSampler adds what is special about Redis: it runs its commands on one core.
type redisSampler struct {
	sampler
	redis       *redisEngine
	cluster     bool   // it is a node of one
	appendfsync string // empty: the server does not say
}

func (r *redisSampler) AddTo(u *sample.Usage) {
	u.Resources.StoreOneCore = true
	if b, a := r.before, r.after; b != nil && a != nil && !r.readsIO {
		if err := notTheLog(b.rewritten, a.rewritten, r.appendfsync); err != nil {
			a.unknown[keyWritten] = err
		}
	}
	r.sampler.AddTo(u)
}

// notTheLog returns why a Redis on another machine wrote other bytes than those by which
// its log has grown.
func notTheLog(before, after, appendfsync string) error {
	switch {
	case before != after:
		return errors.New("it is on another machine, and wrote its log anew or made a snapshot: it does not count those bytes")
	case appendfsync != "everysec" && appendfsync != "no":
		return fmt.Errorf("it is on another machine, and with appendfsync %q writes the last page of its log again for each sync, which it does not count", appendfsync)
	}
	return nil
}

var errReplicasCounted = errors.New("before version 7.0 it counts what it sends to replicas, too")

func (r *redisEngine) close() error { return r.client.Close() }

// counters asks for everything at once: until 7.0, INFO takes no list of sections.
func (r *redisEngine) counters(ctx context.Context) (*counters, error) {
	got := r.traffic.got.Load()
	fields, err := r.info(ctx, "all")
	if err != nil {
		return nil, err
	}
	// Redis counts the bytes of a command when it reads it and those of a reply when it
	// has written it: this INFO's are in the former only.
	return parseInfo(fields, r.traffic.sent.Load(), got)
}

func parseInfo(fields map[string]string, sent, got int64) (*counters, error) {
	n := numbers{fields: fields}
	c := &counters{
		server:  fields["run_id"],
		deleted: int64(n.whole("expired_keys") + n.whole("evicted_keys")),
		values: map[string]float64{
			// Since 7.0 the totals include the bytes of replication.
			keyBytesIn:  n.whole("total_net_input_bytes") - n.optional("total_net_repl_input_bytes") - float64(sent),
			keyBytesOut: n.whole("total_net_output_bytes") - n.optional("total_net_repl_output_bytes") - float64(got),
			// The buffers of ordinary clients are left in: they are much the same at both
			// ends, and what Redis reports of them is seconds old.
			keyMemory: n.whole("used_memory") - n.optional("mem_not_counted_for_evict") - n.optional("mem_replication_backlog"),
			// See notTheLog.
			keyWritten:  n.optional("aof_current_size"),
			keyChildren: n.seconds("used_cpu_sys_children") + n.seconds("used_cpu_user_children"),
		},
		levels:    map[string]float64{keyUsed: n.whole("used_memory"), keyRSS: n.whole("used_memory_rss")},
		rewritten: strings.Join([]string{fields["aof_rewrites"], fields["aof_base_size"], fields["rdb_saves"], fields["rdb_last_save_time"], fields["aof_rewrite_in_progress"], fields["rdb_bgsave_in_progress"]}, " "),
	}
	main := "_main_thread" // since 6.2; before, the other threads do little
	if fields["used_cpu_sys"+main] == "" {
		main = ""
	}
	c.values[keyMain] = n.seconds("used_cpu_sys"+main) + n.seconds("used_cpu_user"+main)
	// The next rewrite is for what was appended since the last one.
	appended := n.optional("aof_current_size") - n.optional("aof_base_size")
	c.debt = &appended
	if fields["total_net_repl_output_bytes"] == "" && n.optional("connected_slaves") > 0 {
		c.unknown = map[string]error{keyBytesOut: errReplicasCounted}
	}
	calls, err := clientCalls(fields)
	c.values[keyCalls] = calls
	if err := errors.Join(n.err, err); err != nil {
		return nil, fmt.Errorf("read INFO: %w", err)
	}
	return c, nil
}

// clientCalls adds up the commands that clients sent. Redis counts a command that a script
// calls like one that a client sends, so those that our scripts call are left out: the sum
// is a lower bound.
func clientCalls(fields map[string]string) (sum float64, err error) {
	leaveOut := map[string]bool{"info": true, "replconf": true, "psync": true, "sync": true} // the sampler's own, and replicas
	for _, script := range lua.All() {
		for _, command := range commandsIn(script.Source) {
			leaveOut[command] = true
		}
	}
	for name, value := range fields {
		command, ok := strings.CutPrefix(name, "cmdstat_")
		// Redis 7 names subcommands, as in config|get; scripts name the command.
		container, _, _ := strings.Cut(command, "|")
		if !ok || leaveOut[container] {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		count, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += float64(count)
	}
	return sum, nil
}

var calledCommand = regexp.MustCompile(`call\s*\(\s*['"](\w+)['"]`)

// commandsIn returns the commands that a Lua script calls, in lower case: by redis.call,
// pcall, or a local name that ends in call.
func commandsIn(script string) (commands []string) {
	for _, match := range calledCommand.FindAllStringSubmatch(script, -1) {
		commands = append(commands, strings.ToLower(match[1]))
	}
	return commands
}

// cpu adds up all threads, and children that have ended (a rewrite of the AOF, a snapshot).
func (r *redisEngine) cpu(ctx context.Context) (*float64, error) {
	fields, err := r.info(ctx, "cpu")
	if err != nil {
		return nil, err
	}
	n := numbers{fields: fields}
	seconds := n.seconds("used_cpu_sys") + n.seconds("used_cpu_user") + n.seconds("used_cpu_sys_children") + n.seconds("used_cpu_user_children")
	if n.err != nil {
		return nil, fmt.Errorf("read INFO cpu: %w", n.err)
	}
	return &seconds, nil
}

func (r *redisEngine) connections(ctx context.Context) (open, most int, err error) {
	const allowed = "maxclients"
	fields, err := r.info(ctx, "clients")
	if err != nil {
		return 0, 0, err
	}
	if fields[allowed] == "" { // older servers have it as a setting only
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		settings, err := r.client.ConfigGet(ctx, allowed).Result()
		if err != nil {
			return 0, 0, fmt.Errorf("CONFIG GET %s: %w", allowed, err)
		}
		fields[allowed] = settings[allowed]
	}
	n := numbers{fields: fields}
	open, most = int(n.whole("connected_clients")), int(n.whole(allowed))
	return open, most, n.err
}

func (r *redisEngine) info(ctx context.Context, section string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text, err := r.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("INFO %s: %w", section, err)
	}
	return redisconn.Fields(text), nil
}
