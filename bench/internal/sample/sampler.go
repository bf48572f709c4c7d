package sample

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	gopsutil "github.com/shirou/gopsutil/v4/process"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
	"sagabench/internal/secret"
)

// Config says what to measure. What is left empty is not measured.
type Config struct {
	AppPIDs    []int       // app servers on this machine
	AppMetrics []string    // URLs of the app servers' /metrics, one per server
	AppToken   secret.Text // sent to them, if set

	OpenStore func(context.Context) (Store, error) // connects to the store's server; nil: it has none

	StoreDevice string // block device of the store's files, by the kernel's name; empty: unknown

	Every time.Duration       // between samples of the timeline; 0: there are none
	Watch func(result.Sample) // called with each sample of the timeline; may be nil, and must return quickly

	Timeout time.Duration // for reading the app servers' metrics
}

// Default measures this process, once a second.
func Default() Config {
	return Config{Every: time.Second, Timeout: 5 * time.Second}
}

// Store measures the server of a store, or all of them, over one interval. Only CPU and
// PIDs may be called at any time.
type Store interface {
	// PIDs returns the servers' processes on this machine, of each the one that started its
	// others. It returns none if one is unknown.
	PIDs() []int

	Begin(ctx context.Context) error
	End(ctx context.Context) error

	// CPU returns the seconds of CPU that the servers have used since they started; nil if
	// they are unknown. It is cheap.
	CPU(ctx context.Context) (*float64, error)

	// AddTo adds what was used between Begin and End, and reports what is unknown with
	// Usage.Fail. Usage.Elapsed is set.
	AddTo(u *Usage)

	Close() error
}

// Sampler measures one interval: New, Begin, End, Usage, Close.
type Sampler struct {
	cfg   Config
	app   []*gopsutil.Process
	store Store // nil: there is none

	before, after snapshot
	samples       []result.Sample
	stop          context.CancelFunc
	timeline      sync.WaitGroup
}

// New connects to what is to be measured. Its error says what is missing.
func New(ctx context.Context, cfg Config) (s *Sampler, err error) {
	s = &Sampler{cfg: cfg, stop: func() {}}
	for _, pid := range cfg.AppPIDs {
		p, err := gopsutil.NewProcessWithContext(ctx, int32(pid))
		if err != nil {
			return nil, fmt.Errorf("measure the app server: process %d: %w", pid, err)
		}
		s.app = append(s.app, p)
	}
	if cfg.OpenStore != nil {
		if s.store, err = cfg.OpenStore(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Begin starts the interval. It never fails: Usage lacks what cannot be read, and has the
// reason.
func (s *Sampler) Begin(ctx context.Context) error {
	// The most expensive first, the cheap ones as close to the interval as possible. End
	// reads them in the opposite order.
	s.before.readMetrics(ctx, s)
	if s.store != nil {
		s.before.fail("the store", s.store.Begin(ctx))
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
		s.after.fail("the store", s.store.End(ctx))
	}
	s.after.readMetrics(ctx, s)
	return nil
}

// Close closes the connections.
func (s *Sampler) Close() error {
	s.stop()
	s.timeline.Wait()
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// snapshot is what was read at one end of the interval. What could not be read is nil,
// and failures has the reason.
type snapshot struct {
	at        time.Time
	own       ownUse
	app       *float64 // CPU seconds of the app's processes
	host      *hostTimes
	links     map[string]link
	pressure  *float64 // seconds in which something waited for a CPU of this machine
	load      allowed
	store     allowed
	device    *float64 // bytes written to the store's device
	cpus      validity.CPUs
	metrics   metrics
	metricsAt time.Time
	failures  []error
}

func (s *snapshot) readProcesses(ctx context.Context, sampler *Sampler) {
	var err error
	s.app, err = cpuSeconds(ctx, sampler.app)
	s.fail("the CPU of the app", err)
	s.host, err = readHost(ctx)
	s.fail("the CPU of this machine", err)
	s.links, err = readLinks(ctx, interfaces)
	s.fail("the network of this machine", err)
	s.pressure = cpuPressure()
	if device := sampler.cfg.StoreDevice; device != "" {
		s.device, err = deviceWritten(device)
		s.fail("the device of the store", err)
	}
	s.cpus = validity.CPUs{Load: cpusOf(os.Getpid()), App: cpusOf(sampler.cfg.AppPIDs...)}
	s.load = allowedOf(s.cpus.Load, os.Getpid())
	if sampler.store != nil {
		pids := sampler.store.PIDs()
		s.cpus.Store = cpusOf(pids...)
		s.store = allowedOf(s.cpus.Store, pids...)
	}
	s.at = time.Now()
	s.own, err = readOwnUse()
	s.fail("the CPU of the load generator", err)
}

func (s *snapshot) readMetrics(ctx context.Context, sampler *Sampler) {
	if len(sampler.cfg.AppMetrics) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sampler.cfg.Timeout)
	defer cancel()
	var err error
	s.metrics, err = readMetrics(sampler.cfg.AppMetrics, sampler.scrape(ctx))
	s.metricsAt = time.Now()
	s.fail("the app's metrics", err)
}

func (s *snapshot) fail(what string, err error) {
	if err != nil {
		s.failures = append(s.failures, fmt.Errorf("%s: %w", what, err))
	}
}
