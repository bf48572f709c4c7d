package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
	"sagabench/internal/secret"
)

// Config says what to look at. What is left empty is not measured.
type Config struct {
	AppPIDs    []int       // app servers that run on this machine
	AppMetrics []string    // URLs of the app servers' /metrics, one per server
	AppToken   secret.Text // shown to them, if there is one

	Store Server

	Every time.Duration       // of the timeline; 0: none
	Watch func(result.Sample) // told of each of its moments; may be nil, and must return quickly

	Timeout time.Duration // for one look at a server; 0: that of Default
}

// Default looks at nothing but this process, once a second.
func Default() Config {
	return Config{Every: time.Second, Timeout: 5 * time.Second}
}

// Sampler measures one interval: New, Begin, End, Usage, Close.
type Sampler struct {
	cfg   Config
	app   []process
	store storeServer // nil: there is none

	before, after snapshot
	moments       []result.Sample
	stop          context.CancelFunc
	timeline      sync.WaitGroup
}

// New connects to what is to be measured. Its error says what is not there.
func New(ctx context.Context, cfg Config) (*Sampler, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = Default().Timeout
	}
	s := &Sampler{cfg: cfg, stop: func() {}}
	for _, pid := range cfg.AppPIDs {
		p, err := newProcess(ctx, pid)
		if err != nil {
			return nil, fmt.Errorf("measure the app server: %w", err)
		}
		s.app = append(s.app, p)
	}
	store, err := newStoreServer(ctx, cfg.Store, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	s.store = store
	return s, nil
}

// Begin starts the interval. It never fails: what cannot be read is missing
// from Usage, with the reason.
func (s *Sampler) Begin(ctx context.Context) error {
	// The expensive look first, the cheap ones as close to the interval as can
	// be; End goes the other way round.
	s.before.readMetrics(ctx, s)
	if s.store != nil {
		s.before.fail("the store", s.store.begin(ctx))
	}
	s.before.readProcesses(ctx, s)

	if s.cfg.Every > 0 {
		ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
		s.timeline.Go(func() { s.watch(ctx) })
	}
	return nil
}

// End ends the interval.
func (s *Sampler) End(ctx context.Context) error {
	s.stop()
	s.timeline.Wait()
	s.after.readProcesses(ctx, s)
	if s.store != nil {
		err := s.store.end(ctx)
		s.after.fail("the store", err)
		if err == nil {
			s.after.readConnections(ctx, s.store)
		}
	}
	s.after.readMetrics(ctx, s)
	return nil
}

// Close lets go of the connections.
func (s *Sampler) Close() error {
	s.stop()
	s.timeline.Wait()
	if s.store == nil {
		return nil
	}
	return s.store.close()
}

// snapshot is what was read at one end of the interval. What could not be read
// is nil, and why is in failures.
type snapshot struct {
	at         time.Time
	own        ownUse
	app        *float64 // CPU seconds of the app's processes
	host       *hostTimes
	links      map[string]link
	cpus       validity.CPUs
	metrics    *appMetrics
	storeConns *float64 // open, of all that the store's server allows
	failures   []error
}

func (s *snapshot) readProcesses(ctx context.Context, sampler *Sampler) {
	if len(sampler.app) > 0 {
		app, err := cpuSeconds(ctx, sampler.app)
		s.fail("the CPU of the app", err)
		s.app = app
	}
	host, err := readHost(ctx)
	s.fail("the CPU of this machine", err)
	s.host = host
	links, err := readLinks(ctx, interfaces)
	s.fail("the network of this machine", err)
	s.links = links
	s.cpus = validity.CPUs{Load: cpusOf(os.Getpid()), App: cpusOf(sampler.cfg.AppPIDs...)}
	if pid := sampler.cfg.Store.PID; pid != 0 {
		s.cpus.Store = cpusOf(pid)
	}
	s.at = time.Now()
	own, err := readOwnUse()
	s.fail("the CPU of the load generator", err)
	s.own = own
}

func (s *snapshot) readMetrics(ctx context.Context, sampler *Sampler) {
	if len(sampler.cfg.AppMetrics) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sampler.cfg.Timeout)
	defer cancel()
	metrics, err := readMetrics(ctx, sampler.cfg.AppMetrics, sampler.cfg.AppToken)
	s.fail("the app's metrics", err)
	s.metrics = metrics
}

func (s *snapshot) fail(what string, err error) {
	if err != nil {
		s.failures = append(s.failures, fmt.Errorf("%s: %w", what, err))
	}
}

var errRestarted = errors.New("the server was restarted or replaced during the run")
