package microbench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sagabench/bench/internal/microbench/wire"
	"sagabench/internal/tlsfiles"
	"sagabench/lua"
)

// bench measures one server.
type bench struct {
	cfg     Config
	address string
	keys    keyspace
	server  Server
	pollUS  float64 // the server's CPU of one INFO cpu

	control *redis.Client // for all but the measured calls
	conns   []*wire.Conn

	caseList
	created    bool  // there may be keys to remove
	dueIndexes []int // that are preloaded
	rounds     int
	nextSaga   int
	notes      []string // what was not measured, and why
}

// open connects to the server and preloads what the cases need, under a random prefix.
// The error does not contain the URL's password.
func open(ctx context.Context, cfg Config, url string) (_ *bench, err error) {
	url, files := tlsfiles.CutURL(url)
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("redis: url: want redis://[user:password@]host:port[/db]")
	}
	if err := files.SetRedis(options.TLSConfig); err != nil {
		return nil, fmt.Errorf("redis: url: %w", err)
	}
	options.PoolSize, options.DialerRetries = 1, 1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = wire.Timeout, wire.Timeout, wire.Timeout
	options.Protocol, options.DisableIdentity = 2, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	b := &bench{cfg: cfg, address: options.Addr, control: redis.NewClient(options), keys: keyspace{prefix: "b" + rand.Text()[:7], sizes: cfg.DueIndexes}}
	if err := b.prepare(ctx, *options); err != nil {
		return nil, errors.Join(fmt.Errorf("redis at %s: %w", b.address, err), b.close())
	}
	return b, nil
}

// prepare does everything that comes before the first round.
func (b *bench) prepare(ctx context.Context, options redis.Options) (err error) {
	for range connections {
		s, err := wire.Dial(ctx, options)
		if err != nil {
			return err
		}
		b.conns = append(b.conns, s)
	}
	for _, do := range []func(context.Context) error{b.identify, b.calibrate, b.preload} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	if b.cfg.Against != nil {
		b.caseList = comparisonCases(b.cfg.Against)
	} else if b.caseList, err = b.priceCases(ctx); err != nil {
		return err
	}
	for _, c := range b.cases {
		if err := b.loadScript(ctx, c.script); err != nil {
			return err
		}
	}
	return nil
}

// loadScript does nothing for a case without a script.
func (b *bench) loadScript(ctx context.Context, script lua.Script) error {
	if script.Source == "" {
		return nil
	}
	if err := b.control.ScriptLoad(ctx, script.Source).Err(); err != nil {
		return fmt.Errorf("script %s: %w", script.Name, err)
	}
	return nil
}

// Server is what the server says about itself.
type Server struct {
	Version   string            `json:"version"`
	Allocator string            `json:"allocator"`
	Settings  map[string]string `json:"settings"` // those that could be read
}

// identify reads the server's version and settings.
func (b *bench) identify(ctx context.Context) error {
	fields, err := b.info(ctx, "all")
	if err != nil {
		return err
	}
	if fields["cluster_enabled"] == "1" {
		if b.keys.tag, err = b.ownTag(ctx); err != nil {
			return err
		}
	}
	b.server = Server{Version: fields["redis_version"], Allocator: fields["mem_allocator"], Settings: map[string]string{}}
	for _, name := range []string{"cluster-enabled", "io-threads", "appendonly", "appendfsync", "save", "hz", "zset-max-ziplist-entries"} {
		setting, err := b.control.ConfigGet(ctx, name).Result()
		if wire.IsRefusal(err) {
			b.note("settings: CONFIG: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		if value, known := setting[name]; known { // older servers do not have all of them
			b.server.Settings[name] = value
		}
	}
	return nil
}

// ownTag returns a hash tag whose slot is one of this node of a cluster: for the others it
// refers to another node.
func (b *bench) ownTag(ctx context.Context) (string, error) {
	const tries = 100_000 // a master that holds one slot has one of 16,384
	for n := range tries {
		tag := strconv.Itoa(n)
		err := b.control.Get(ctx, b.keys.prefix+":{"+tag+"}").Err()
		switch _, elsewhere := redis.IsMovedError(err); {
		case errors.Is(err, redis.Nil):
			return tag, nil
		case !elsewhere:
			return "", fmt.Errorf("looking for a slot of this node: %w", err)
		}
	}
	return "", errors.New("it is a node of a Redis Cluster that holds no slots: name a master")
}

func (b *bench) doing(format string, args ...any) {
	b.cfg.Progress(Progress{Doing: fmt.Sprintf(format, args...)})
}

// note adds a line to what was not measured.
func (b *bench) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(b.notes, line) {
		b.notes = append(b.notes, line)
	}
}

// round measures each case once, in inverted order every other time. It ends early
// when ctx does.
func (b *bench) round(ctx context.Context, show func(Progress)) error {
	b.rounds++
	order := slices.Clone(b.cases)
	if b.rounds%2 == 0 {
		slices.Reverse(order)
	}
	for i, c := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.refused {
			continue
		}
		show(Progress{Doing: c.Case, Done: i, Of: len(order), Round: b.rounds})
		// A window is not interrupted: it removes its sagas.
		err := b.measureCase(context.WithoutCancel(ctx), c)
		if wire.IsRefusal(err) { // this concerns only this case
			c.refused = true
			b.note("%s: %v", c.name(), err)
		} else if err != nil {
			return fmt.Errorf("redis at %s: %s: %w", b.address, c.Case, err)
		}
	}
	return nil
}

func (b *bench) measureCase(ctx context.Context, c *callCase) error {
	if c.calls == 0 {
		if err := b.chooseCalls(ctx, c); err != nil {
			return err
		}
	}
	s, err := b.window(ctx, c, c.calls)
	if err == nil {
		c.samples[b.rounds] = s
	}
	return err
}

// chooseCalls finds how many calls fill a window. The number is limited so that a short
// due index stays short and the calls take little memory. A case has as many calls as
// its reference, because the first calls of a window cost more.
func (b *bench) chooseCalls(ctx context.Context, c *callCase) error {
	if c.reference != nil && c.reference.calls > 0 {
		c.calls = c.reference.calls
		return nil
	}
	const minCalls, maxBytes = 8, 16 << 20
	s, err := b.window(ctx, c, max(minCalls, 128/c.Sagas))
	if err != nil {
		return err
	}
	n := min(s.callsPerS()*b.cfg.Window.Seconds(), maxBytes/s.inPerCall())
	c.calls = max(minCalls, c.Pipeline, min(int(n), smallIndexes*maxAdded/c.Sagas))
	return nil
}

// window measures n calls of a case on new sagas, which it removes.
func (b *bench) window(ctx context.Context, c *callCase, n int) (s sample, err error) {
	calls := b.keys.calls(n, b.nextSaga, c.Shape)
	b.nextSaga += n * c.Sagas
	if err = b.pipeline(ctx, c.prepare, calls); err == nil {
		s, err = b.measure(ctx, c.load(calls))
		s.sagas = float64(n * c.Sagas)
	}
	return s, errors.Join(err, b.pipeline(ctx, c.clear, calls))
}

func (b *bench) pipeline(ctx context.Context, queue commands, calls []callKeys) error {
	if queue == nil {
		return nil
	}
	_, err := b.control.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		queue(ctx, pipe, calls)
		return nil
	})
	return err
}

// close removes what was created on the server and disconnects.
func (b *bench) close() error {
	var err error
	if b.created {
		if err = b.removeKeys(context.Background()); err != nil {
			err = fmt.Errorf("redis at %s: keys that begin with %s are left: %w", b.address, b.keys.prefix, err)
		}
	}
	for _, s := range b.conns {
		s.Close()
	}
	b.control.Close()
	return err
}
