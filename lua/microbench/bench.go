package microbench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/internal/tlsfiles"
	"sagabench/lua"
)

// Config says what to measure, where.
type Config struct {
	URL string // redis://[user:password@]host:port[/db], or rediss:// for TLS, as for a store

	// Against are scripts to compare package lua's with; nothing else is measured
	// then. See lua.ReadDir.
	Against []lua.Script

	// Brief leaves out all probes but those of a saga's three scripts, in a few
	// shapes.
	Brief bool

	// Functions allows a function library on the server for as long as the Bench
	// is open. A process that is killed leaves it there.
	Functions bool

	Window   time.Duration  // how long a probe is driven in a round, about
	Due      []int          // sizes of the due indexes that scripts are measured on, beside one with only the sagas in flight
	Finished int            // sagas that have ended and are kept while it is measured
	Progress func(Progress) // told before each probe; may be nil
}

// Default measures for some seven seconds a round.
func Default() Config {
	return Config{URL: "redis://127.0.0.1:6379", Window: 12 * time.Millisecond, Due: []int{10_000, 1_000_000}, Finished: 100_000}
}

// Progress says what is about to be done.
type Progress struct {
	Doing    string
	Done, Of int // probes of this round
	Round    int // from 1; 0 while preparing
}

// Bench measures on one server.
type Bench struct {
	cfg     Config
	options *redis.Options
	keys    keys
	control *client
	conns   []*client
	self    Self
	server  Server

	cells      []*cell // once it is known what to measure
	rounds     int
	next       int // number of the next saga
	records    []Record
	agreements []Agreement
	notes      []string     // what could not be done, and why
	filled     map[int]bool // due indexes that are there
	function   bool         // ours is on the server
	made       bool         // there may be keys to be removed
	left       func() error // removes what could not be removed yet; nil: nothing
}

// connections is how many send at the same time where nothing else is said: enough
// that a server always finds the next call waiting.
const connections = 16

// Open connects to the server and prepares what the probes need on it, under a
// prefix of its own. The error does not hold the URL's password.
func Open(ctx context.Context, cfg Config) (_ *Bench, err error) {
	url, files := tlsfiles.CutURL(cfg.URL)
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("redis: url: want redis://[user:password@]host:port[/db]")
	}
	if err := files.SetRedis(options.TLSConfig); err != nil {
		return nil, fmt.Errorf("redis: url: %w", err)
	}
	b := &Bench{cfg: cfg, options: options, keys: keys{"b" + rand.Text()[:7], cfg.Due}, filled: map[int]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.control, err = dial(ctx, options); err != nil {
		return nil, err
	}
	for range connections {
		conn, err := dial(ctx, options)
		if err != nil {
			return nil, err
		}
		b.conns = append(b.conns, conn)
	}
	if b.server, err = b.look(); err != nil {
		return nil, err
	}
	b.doing("looking at the server")
	if err := b.calibrate(); err != nil {
		return nil, err
	}
	b.made = true
	if err := errors.Join(b.fillFinished(), b.fill(ctx, 0)); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Bench) doing(format string, args ...any) {
	if b.cfg.Progress != nil {
		b.cfg.Progress(Progress{Doing: fmt.Sprintf(format, args...)})
	}
}

// note keeps what could not be done.
func (b *Bench) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.notes, text) {
		b.notes = append(b.notes, text)
	}
}

// Round measures every probe once, in turns from the first to the last and from
// the last to the first. It ends early, with what it has, when ctx does.
func (b *Bench) Round(ctx context.Context) error {
	if b.cells == nil {
		if err := b.prepare(ctx); err != nil {
			return fmt.Errorf("redis at %s: %w", b.options.Addr, err)
		}
	}
	b.rounds++
	order := slices.Clone(b.cells)
	if b.rounds%2 == 0 {
		slices.Reverse(order)
	}
	for i, c := range order {
		if b.cfg.Progress != nil {
			b.cfg.Progress(Progress{Doing: c.Probe, Done: i, Of: len(order), Round: b.rounds})
		}
		if err := b.measureCell(ctx, c); err != nil {
			return fmt.Errorf("redis at %s: %s: %w", b.options.Addr, c.Probe, err)
		}
	}
	return nil
}

// measureCell measures one probe. What the server refuses concerns that probe
// only.
func (b *Bench) measureCell(ctx context.Context, c *cell) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.failure != "" {
		return nil
	}
	err := b.window(c)
	if isRefused(err) {
		c.failure = err.Error()
		b.note("%s: %v", c.name(), err)
		return nil
	}
	return err
}

// leastCalls is how many calls a window has at least.
const leastCalls = 8

func (b *Bench) window(c *cell) error {
	if c.calls == 0 {
		if err := b.fit(c); err != nil {
			return err
		}
	}
	s, err := b.once(c.probe, c.calls)
	if err == nil {
		c.samples[b.rounds] = s
	}
	return err
}

// fit finds how many calls fill a window: not so many that a short due index
// becomes long, or that they take much memory. What is to be compared has as many
// as what it is compared with, for the first calls of a window are dearer.
func (b *Bench) fit(c *cell) error {
	if c.like != nil && c.like.calls > 0 {
		c.calls = c.like.calls
		return nil
	}
	first := max(leastCalls, 128/c.Sagas)
	return b.with(c.probe, int(first), func(l *load, _ float64) error {
		took, err := drive(b.conns[:c.Conns], l)
		const bytes = 16 << 20
		n := first * b.cfg.Window.Seconds() / took.Seconds()
		n = min(n, first*bytes/float64(len(l.calls.bytes)), smallIndexes*most/c.Sagas)
		c.calls = int(max(leastCalls, c.Pipeline, n))
		return err
	})
}

// once measures so many calls of a probe.
func (b *Bench) once(p probe, n int) (s sample, err error) {
	err = b.with(p, n, func(l *load, sagas float64) error {
		s, err = b.measure(l, p.Conns, sagas)
		return err
	})
	return s, err
}

// with makes so many calls of a probe, puts there what they need, has them sent,
// and clears away what they leave.
func (b *Bench) with(p probe, n int, send func(l *load, sagas float64) error) error {
	plan := b.keys.plan(n, b.next, p.Shape)
	sagas := 0
	for _, call := range plan {
		sagas += len(call.sagas)
	}
	b.next += sagas
	err := b.send(p.prepare, plan)
	if err == nil {
		err = send(p.load(plan), float64(sagas))
	}
	return errors.Join(err, b.clear(p, plan))
}

// clear removes what a probe left, and remembers it until it is gone.
func (b *Bench) clear(p probe, plan []group) error {
	b.left = func() error { return b.send(p.clear, plan) }
	err := b.left()
	if err == nil {
		b.left = nil
	}
	return err
}

func (b *Bench) send(what func(*calls, []group), plan []group) error {
	if what == nil {
		return nil
	}
	var all calls
	what(&all, plan)
	return b.control.doAll(&all)
}

// Close removes what the Bench made on the server and disconnects. Of scripts the
// server keeps a copy until it is restarted.
func (b *Bench) Close() error {
	if b.control == nil {
		return nil
	}
	var err error
	if b.made {
		err = b.wipe()
	}
	if err != nil && !isRefused(err) { // the connection may be what is broken
		b.control.conn.Close()
		if control, dialed := dial(context.Background(), b.options); dialed == nil {
			b.control = control
			err = b.wipe()
		}
	}
	if err != nil {
		err = fmt.Errorf("redis at %s: keys that begin with %s are left: %w", b.options.Addr, b.keys.prefix, err)
	}
	b.control.conn.Close()
	for _, conn := range b.conns {
		conn.conn.Close()
	}
	b.control, b.conns = nil, nil
	return err
}
