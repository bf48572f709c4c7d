package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
)

// engine reads the counters of one kind of server.
type engine interface {
	counters(ctx context.Context) (*counters, error)
	cpu(ctx context.Context) (*float64, error) // see sample.Store
	connections(ctx context.Context) (open, most int, err error)
	close() error
}

// counters is what a server has counted since it started, without what the sampler itself
// sent, got and asked.
type counters struct {
	server  string // identifies its process; empty if the connection does
	deleted int64  // sagas, or what stands for them

	// values are by key of a figure of result.Cost, or of result.Resources for one that
	// counts seconds. unknown has why one is missing.
	values  map[string]float64
	unknown map[string]error

	extent float64 // bytes that the data grows by at once

	levels map[string]float64 // by key of a figure of result.Resources: as they are now
	debt   *float64           // bytes of work that was put off; nil: unknown

	// What the server's processes had written, and a limit of it: see writtenBy. nil: unknown.
	written, mostWritten *float64

	rewritten string // of a Redis: another one after each rewrite of its log and each snapshot
}

// The figures with rules of their own.
const (
	keyCPU    = "store_cpu_us"
	keyFsyncs = "store_fsyncs"
	keyMemory = "store_memory_bytes" // it may shrink

	keyBytesIn  = "store_bytes_in"
	keyBytesOut = "store_bytes_out"
	keyCalls    = "store_calls"
	keyWritten  = "store_bytes_written"
	keyRSS      = "store_rss_bytes"
	keyUsed     = "store_used_bytes"
	keyMain     = "store_main_core"
	keyChildren = "store_child_cores"
)

var (
	errRestarted = errors.New("the server was restarted or replaced during the run")
	errDeleted   = errors.New("sagas were dropped meanwhile, so what is left says nothing about one")
)

// sampler implements sample.Store for an engine.
type sampler struct {
	engine
	process             serverProcess
	readsIO             bool // of the process; else it is the engine's counters that say what it wrote
	before, after       *counters
	cpuBefore, cpuAfter *float64
	conns               *float64 // open at the end, of those that the server allows
	noConns             error
}

var _ sample.Store = (*sampler)(nil)

func (s *sampler) Close() error                              { return s.close() }
func (s *sampler) CPU(ctx context.Context) (*float64, error) { return s.cpu(ctx) }

func (s *sampler) PIDs() []int {
	if s.process.pid == 0 {
		return nil
	}
	return []int{s.process.pid}
}

func newSampler(ctx context.Context, e engine, process serverProcess) sampler {
	_, err := process.sum(ctx, writtenBy)
	return sampler{engine: e, process: process, readsIO: err == nil}
}

// readProcess adds what only the processes say.
func (s *sampler) readProcess(ctx context.Context, c *counters) {
	if c.unknown == nil {
		c.unknown = map[string]error{}
	}
	if s.readsIO {
		delete(c.unknown, keyWritten)
		var err error
		if c.written, err = s.process.sum(ctx, writtenBy); err != nil {
			c.unknown[keyWritten] = err
		}
	}
	if c.levels == nil {
		c.levels = map[string]float64{}
	}
	if _, ok := c.levels[keyRSS]; !ok {
		if memory, err := s.process.sum(ctx, memoryOf); err == nil {
			c.levels[keyRSS] = *memory
		}
	}
}

// Begin reads the CPU last and End reads it first, so that the questions are not in it.
func (s *sampler) Begin(ctx context.Context) (err error) {
	s.after = nil
	if s.before, err = s.counters(ctx); err != nil {
		return err
	}
	s.readProcess(ctx, s.before)
	s.cpuBefore, err = s.cpu(ctx)
	return err
}

func (s *sampler) End(ctx context.Context) (err error) {
	var noCPU error
	s.cpuAfter, noCPU = s.cpu(ctx)
	if s.after, err = s.counters(ctx); err != nil {
		return err
	}
	s.readProcess(ctx, s.after)
	open, most, err := s.connections(ctx)
	if s.noConns = err; err == nil && most > 0 {
		share := min(1, float64(open)/float64(most))
		s.conns = &share
	}
	return noCPU
}

func (s *sampler) AddTo(u *sample.Usage) {
	b, a := s.before, s.after
	if b == nil || a == nil {
		return // Begin or End returned why
	}
	if b.server != a.server {
		u.Fail("the store", errRestarted)
		return
	}
	u.Resources.StoreServerConns = s.conns
	if s.noConns != nil {
		u.Fail("the connections of the store's server", s.noConns)
	}
	if s.cpuBefore != nil && s.cpuAfter != nil {
		b.values[keyCPU], a.values[keyCPU] = *s.cpuBefore*1e6, *s.cpuAfter*1e6
	}
	if b.written != nil && a.written != nil {
		written := *a.written - *b.written
		if b.mostWritten != nil && a.mostWritten != nil {
			written = min(written, *a.mostWritten-*b.mostWritten)
		}
		b.values[keyWritten], a.values[keyWritten] = 0, written
	}
	addDifferences(u, result.CostFields, &u.Total, b, a, 1)
	addDifferences(u, result.ResourceFields, &u.Resources, b, a, u.Elapsed.Seconds())
	for _, f := range result.ResourceFields {
		if x, ok := a.levels[f.Key]; ok {
			f.Set(&u.Resources, &x)
		}
	}
	if b.debt != nil && a.debt != nil {
		grown := *a.debt - *b.debt
		u.Resources.StoreDebtBytes = &grown
	}
}

// addDifferences sets the figures that both counters have. It divides them by per.
func addDifferences[T any](u *sample.Usage, fields []result.Field[T], to *T, b, a *counters, per float64) {
	for _, f := range fields {
		before, ok := b.values[f.Key]
		after, ok2 := a.values[f.Key]
		grown := after - before
		unknown := cmp.Or(b.unknown[f.Key], a.unknown[f.Key])
		switch {
		case unknown != nil:
			u.Fail(f.Label, unknown)
		case !ok || !ok2 || per <= 0:
		case f.Key == keyMemory && a.deleted != b.deleted:
			u.Fail(f.Label, errDeleted)
		case f.Key == keyMemory && a.extent > 0 && (before < a.extent || grown < a.extent):
			u.Fail(f.Label, fmt.Errorf("the table went from %.0f to %.0f bytes: too little to tell, it grows by some MiB at once", before, after))
		case f.Key != keyMemory && grown < 0:
			u.Fail(f.Label, fmt.Errorf("its counter went back from %.0f to %.0f", before, after))
		default:
			grown /= per
			f.Set(to, &grown)
		}
	}
}

// numbers parses the whole numbers that a server reports as text, and keeps what was wrong.
type numbers struct {
	fields map[string]string
	err    error
}

func (n *numbers) whole(name string) float64 {
	x, err := strconv.ParseInt(n.fields[name], 10, 64)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("%s: %w", name, err))
	}
	return float64(x)
}

func (n *numbers) seconds(name string) float64 {
	x, err := strconv.ParseFloat(n.fields[name], 64)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("%s: %w", name, err))
	}
	return x
}

// optional is 0 if this version has no such field.
func (n *numbers) optional(name string) float64 {
	if n.fields[name] == "" {
		return 0
	}
	return n.whole(name)
}

// traffic is the bytes of the sampler's own connection.
type traffic struct{ sent, got atomic.Int64 }

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// counting returns a dialer whose connections count their bytes.
func (t *traffic) counting(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countingConn{c, t}, nil
	}
}

type countingConn struct {
	net.Conn
	traffic *traffic
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.traffic.got.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.sent.Add(int64(n))
	return n, err
}
