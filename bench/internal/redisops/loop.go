package redisops

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/result"
)

// goClient measures with one of the Go clients.
func (b *bench) goClient(ctx context.Context) (r Result, err error) {
	wire := &wire{}
	c, err := newClient(b.cfg.Client, b.target, b.cfg.Clients, b.w, wire)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	wanted := float64(firstElements)
	if b.cfg.Warmup > 0 {
		warm, err := b.part(ctx, c, b.cfg.Warmup, wanted, nil)
		if err != nil {
			return r, err
		}
		if warm.Errors > 0 {
			return r, fmt.Errorf("the warm-up: %d of %d operations failed: %s", warm.Errors, warm.Errors+warm.Operations, warm.FirstError)
		}
		wanted = spareElements * float64(warm.Operations) / warm.Elapsed.Seconds() * b.cfg.Duration.Seconds()
	}
	r, err = b.part(ctx, c, b.cfg.Duration, wanted, wire)
	if err == nil && r.Operations == 0 {
		err = fmt.Errorf("all %d operations failed: %s", r.Errors, r.FirstError)
	}
	return r, err
}

// part sends requests for a time. It measures what they cost if there is a wire. elements is
// how many LPOP may need.
func (b *bench) part(ctx context.Context, c client, length time.Duration, elements float64, wire *wire) (Result, error) {
	l := newLoop(b.cfg, b.w, c)
	if b.cfg.Operation == opLPop {
		n := max(b.listLength(elements), int64(b.cfg.Pipeline))
		if err := b.fillList(ctx, n); err != nil {
			return Result{}, err
		}
		l.left = new(atomic.Int64)
		l.left.Store(n)
	}
	if wire == nil {
		return l.run(ctx, length), ctx.Err()
	}
	runtime.GC() // what came before is not the measured part's garbage
	if err := b.servers.Begin(ctx); err != nil {
		return Result{}, err
	}
	before, err := readOwn(wire)
	if err != nil {
		return Result{}, err
	}
	r := l.run(ctx, length)
	after, err := readOwn(wire)
	if err := errors.Join(err, b.servers.End(ctx)); err != nil {
		return Result{}, err
	}
	before.costs(after, &r)
	b.used(&r)
	return r, ctx.Err()
}

// own is what this process used since it began.
type own struct {
	cpu               time.Duration
	allocs, allocated uint64
	traffic
}

func readOwn(wire *wire) (own, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return own{}, fmt.Errorf("getrusage: %w", err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return own{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs, m.TotalAlloc, wire.traffic()}, nil
}

// costs sets the costs per operation between two readings.
func (o own) costs(after own, r *Result) {
	ops := float64(r.Operations + r.Errors)
	if ops == 0 {
		return
	}
	set := func(to **float64, total float64) { total /= ops; *to = &total }
	set(&r.ClientCPUUS, float64((after.cpu-o.cpu).Nanoseconds())/1e3)
	set(&r.ClientAllocs, float64(after.allocs-o.allocs))
	set(&r.ClientAllocBytes, float64(after.allocated-o.allocated))
	set(&r.RoundTrips, float64(after.roundTrips-o.roundTrips))
	set(&r.BytesSent, float64(after.sent-o.sent))
	set(&r.BytesReceived, float64(after.received-o.received))
}

// loop is a closed loop of requests.
type loop struct {
	cfg    Config
	w      *workload
	client client
	left   *atomic.Int64 // elements of LPOP's list; nil: it is another operation

	histograms [histograms]struct {
		sync.Mutex
		*hdrhistogram.Histogram
	}
}

// histograms is how many the callers share: one each would be a heap that grows with them,
// and the collector would cost less.
const histograms = 8

func newLoop(cfg Config, w *workload, c client) *loop {
	l := &loop{cfg: cfg, w: w, client: c}
	for i := range l.histograms {
		l.histograms[i].Histogram = result.NewHistogram()
	}
	return l
}

// run sends requests until the time is over, the list is used up or ctx ends, and waits for
// all replies.
func (l *loop) run(ctx context.Context, length time.Duration) (r Result) {
	callers := make([]caller, l.cfg.Clients)
	for i := range callers {
		callers[i] = caller{
			loop: l, shard: i % histograms,
			random: rand.New(rand.NewPCG(uint64(i), 1)), // in every run the same keys
			keys:   make([]string, 0, l.cfg.Pipeline*l.cfg.KeysPerRequest),
		}
	}
	began := time.Now()
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() { callers[i].run(ctx, began.Add(length)) })
	}
	group.Wait()
	all := result.NewHistogram()
	for i := range l.histograms {
		all.Merge(l.histograms[i].Histogram)
	}
	last := began
	for _, c := range callers {
		r.Operations += c.ops
		r.Requests += c.requests
		r.Errors += c.failed
		if r.FirstError == "" && c.err != nil {
			r.FirstError = c.err.Error()
		}
		if c.ended.After(last) {
			last = c.ended
		}
	}
	r.Elapsed, r.Latency = last.Sub(began), result.LatencyOf(all)
	return r
}

// caller is one of the concurrent callers.
type caller struct {
	*loop
	shard                 int
	random                *rand.Rand
	keys                  []string
	ops, requests, failed int64
	err                   error // the first
	ended                 time.Time
}

func (c *caller) run(ctx context.Context, until time.Time) {
	calls := context.WithoutCancel(ctx) // see the package comment
	for {
		c.keys = c.w.request(c.keys[:0], c.random.IntN)
		n := int64(len(c.keys))
		if c.left != nil && c.left.Add(-n) < 0 {
			return
		}
		sent := time.Now()
		failed, err := c.client.do(calls, c.keys)
		c.ended = time.Now()
		c.ops += n - int64(failed)
		if err == nil {
			c.requests++
			c.record(c.ended.Sub(sent))
		} else {
			c.failed += int64(failed)
			if c.err == nil {
				c.err = err
			}
		}
		if !c.ended.Before(until) || ctx.Err() != nil {
			return
		}
	}
}

func (c *caller) record(d time.Duration) {
	h := &c.histograms[c.shard]
	h.Lock()
	defer h.Unlock()
	// It cannot fail: the value is in the histogram's range.
	_ = h.RecordValue(min(max(1, d.Round(time.Microsecond).Microseconds()), result.HighestUS))
}
