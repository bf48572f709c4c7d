// Package session measures servers: it makes them ready, sends load, samples what that
// costs, and audits the store at the end.
//
// [Open] takes [Started], a bench server that it starts on a store of its own, or
// [External], servers that run already. [Session.Measure] makes one measurement after
// another. [Session.Close] ends the session. [Run] is a session with one measurement.
// After an error or an interruption, all three return what was measured until then and
// mark it as incomplete.
package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
	"sagabench/bench/internal/server"
	"sagabench/bench/internal/validity"
	"sagabench/internal/secret"
	"sagabench/store"
	"sagabench/store/open"
)

// Config is what all sessions need.
type Config struct {
	ID         string              // see result.RunID
	Command    string              // as typed, without secrets
	Dir        string              // of the result; must not exist or be empty
	Scenario   server.Scenario     // the sagas
	Token      secret.Text         // sent to the servers, if set
	Load       load.Config         // of Run; the session sets Targets, Token, Dir, Begin and End
	SLO        result.SLO          // that Measure looks at; empty: none
	DiskTest   time.Duration       // how long fsyncs are timed on the store's disk; 0: as short as is of use
	Durability string              // class that the store must have, as D3; empty: any
	Status     func(string)        // called with what is being done; may be nil
	Watch      func(result.Sample) // called each second of a measurement with what was used; may be nil
}

func (c Config) status(format string, args ...any) {
	if c.Status != nil {
		c.Status(fmt.Sprintf(format, args...))
	}
}

// Servers are what a session measures: a [Started] or an [External].
type Servers interface {
	// describe returns what is known before the servers are ready.
	describe(cfg Config) site
	// check reports why the servers cannot be reached.
	check(ctx context.Context, cfg Config) error
	// start makes the servers ready for load.
	start(ctx context.Context, cfg Config, store *open.Target) ([]endpoint, error)
	// watch returns a context that ends with ctx or when a server has ended.
	watch(ctx context.Context) (context.Context, context.CancelFunc)
	// stop ends what start began. It reports a server that had ended before.
	stop(cfg Config) error
}

// site is what a session stands on.
type site struct {
	store      *open.Target // nil: unknown, so it is not audited
	ownPlace   bool         // the store's prefix or schema was made for the session
	temporary  string       // directory of a store that was made for the session
	storePIDs  []int        // of the store's servers; empty: unknown
	replicas   []string     // URLs of the replicas of the store's one server
	storeDir   string       // of the files of the first; empty: unknown
	topology   string       // see result.Run
	sharedHost bool         // see result.Run
	appHere    bool         // all of several app servers share the cores of this machine
	targets    []string     // see result.Run
	preloaded  int64        // sagas that start puts into the store
	retentionS *float64     // see result.Store

	clusterReplicas int // of a Redis Cluster
}

// endpoint is where a server takes load and serves its metrics.
type endpoint struct {
	load    load.Target
	metrics string
	pid     int // on this machine; 0: unknown
}

// Session is servers under measurement, and the store behind them.
type Session struct {
	cfg     Config
	servers Servers
	site    site
	targets []load.Target
	sample  sample.Config

	before     store.Settings
	partitions int               // of the store: see store.Partitioned
	disk       *result.StoreDisk // nil: it is not known where the store's files are
	cpus       validity.CPUs     // that the processes may use
	leftovers  int64             // sagas in the store before the first measurement
	started    time.Time

	tried, measured  int
	journals         []string // directories of measurements with a journal
	acknowledged     int64
	lostWrites       int64
	requests, errors int64
	elapsed          time.Duration // from started to the end of the last measurement
}

// Open makes servers and store ready to be measured. After an error, nothing is left of
// what it made.
func Open(ctx context.Context, cfg Config, servers Servers) (*Session, error) {
	if err := servers.check(ctx, cfg); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, servers: servers, site: servers.describe(cfg), partitions: 1}
	s.leftovers = s.site.preloaded
	inDir := s.site.temporary != ""
	if !inDir { // a store that cannot be opened is an error before anything is made
		if err := s.inspectStore(ctx); err != nil {
			return nil, err
		}
	}
	if err := result.ClaimDir(cfg.Dir); err != nil {
		return nil, err
	}
	if inDir {
		if err := s.inspectStore(ctx); err != nil {
			return nil, errors.Join(err, os.RemoveAll(cfg.Dir))
		}
	}
	endpoints, err := servers.start(ctx, cfg, s.site.store)
	if err != nil {
		s.discard(ctx)
		return nil, err
	}
	if dir := s.filesDir(); dir != "" {
		cfg.status("timing fsyncs on the store's disk")
		s.disk = environment.Disk(dir, cfg.DiskTest)
	}
	s.started = time.Now()
	s.sample = s.sampleConfig()
	for _, e := range endpoints {
		s.targets = append(s.targets, e.load)
		s.sample.AppMetrics = append(s.sample.AppMetrics, e.metrics)
		if e.pid != 0 {
			s.sample.AppPIDs = append(s.sample.AppPIDs, e.pid)
		}
	}
	return s, nil
}

// add says that the store is a cluster, if it is one.
func (s *site) add(c backend.Cluster) {
	if len(c.Masters) == 0 {
		return
	}
	s.topology += "; the store is " + c.String()
	s.clusterReplicas = len(c.Replicas)
	if !s.sharedHost && c.Local() {
		s.topology += ", with nodes on this machine"
		s.sharedHost = true
	}
}

// Partitions returns how many the store has. Each has batches of its own in flight.
func (s *Session) Partitions() int { return s.partitions }

// stepsDir holds a directory for each call of Measure.
const stepsDir = "steps"

// Measure sends load of this shape and returns what the servers did and what it cost.
// The same sagas are sent each time, and the store goes on filling. An error says that
// the session must be closed, or that nothing was measured; what was measured until then
// is returned with it.
func (s *Session) Measure(ctx context.Context, shape load.Config) (result.Step, error) {
	s.tried++
	began := time.Now()
	m, err := s.measure(ctx, shape, filepath.Join(s.cfg.Dir, stepsDir, fmt.Sprintf("%02d", s.tried)))
	if ctx.Err() == nil && (err != nil || m.load.Errors > 0) {
		// With one server less, later measurements would be of another system.
		if gone := s.servers.check(ctx, s.cfg); gone != nil {
			err = fmt.Errorf("not all servers answer any more: %w", gone)
		}
	}
	if err != nil {
		m.load.Incomplete = err.Error()
	}
	err = errors.Join(err, context.Cause(ctx))
	if m.load.Elapsed == 0 {
		if err == nil {
			err = errors.New("nothing was measured")
		}
		return result.Step{}, err
	}
	e := m.evidence(shape)
	e.SLO = s.cfg.SLO
	step := result.Step{
		Measurement: m.figures(), StartS: began.Sub(s.started).Seconds(), DurationS: m.load.Elapsed.Seconds(),
		Seconds: m.load.Seconds,
	}
	step.Validity = validity.JudgeStep(step, e, result.Run{Store: s.storeSummary(s.before), SharedHost: s.site.sharedHost})
	return step, err
}

// measurement is what one load showed and what it used.
type measurement struct {
	load  load.Result
	usage sample.Usage
}

func (s *Session) measure(ctx context.Context, shape load.Config, dir string) (m measurement, err error) {
	sampler, err := sample.New(ctx, s.sample)
	if err != nil {
		return m, err
	}
	defer sampler.Close()
	watched, stop := s.servers.watch(ctx)
	defer stop()
	shape.Dir, shape.Token, shape.Targets = dir, s.cfg.Token, s.targets
	shape.Begin, shape.End = sampler.Begin, sampler.End
	m.load, err = load.Run(watched, shape)
	if ctx.Err() == nil && watched.Err() != nil {
		err = errors.Join(err, context.Cause(watched)) // a full disk fails both, and only the load says so
	}
	if m.load.Elapsed > 0 {
		m.usage = sampler.Usage()
		if usable := m.usage.Resources.AppCoresUsable; s.site.appHere && usable != nil && m.usage.HostCores > 0 {
			*usable = min(*usable, float64(m.usage.HostCores))
		}
		s.lostWrites += m.usage.LostWrites
		s.cpus = m.usage.CPUs
		s.measured++
	}
	if _, missing := os.Stat(filepath.Join(dir, result.FileAcknowledged)); missing == nil {
		s.journals = append(s.journals, dir)
	}
	s.acknowledged += m.load.Acknowledged // also of a warm-up alone
	s.requests += m.load.Requests
	s.errors += m.load.Errors
	s.elapsed = time.Since(s.started)
	return m, err
}

// figures returns what the result says of the measurement.
func (m measurement) figures() result.Measurement {
	return result.Measurement{
		Load:        m.load.Load(),
		LatencyMS:   result.LatencyOf(m.load.Latency),
		ServiceMS:   result.LatencyOf(m.load.Service),
		CostPerSaga: m.usage.PerSaga(m.load.Costed),
		Resources:   m.usage.Resources,
	}
}

// evidence is what the judge needs to know of a measurement of this shape.
func (m measurement) evidence(shape load.Config) validity.Evidence {
	e := m.usage.Evidence()
	e.Incomplete = m.load.Incomplete
	e.Planned = shape.Duration
	e.Intervals = m.load.Intervals
	e.Clamped = m.load.Clamped
	return e
}

// Close stops what was started for the session, audits the store and judges what all
// measurements have in common. ended is why they ended early, or nil. If nothing was
// measured then, Close returns ended and leaves nothing behind. ctx may have ended.
func (s *Session) Close(ctx context.Context, ended error) (result.Summary, error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.servers.stop(s.cfg); ended == nil {
		ended = err
	}
	defer s.removeTemporary()
	if s.measured == 0 && ended != nil {
		s.discard(ctx)
		return result.Summary{}, ended
	}
	e := validity.Evidence{CPUs: s.cpus, SLO: s.cfg.SLO}
	switch {
	case errors.Is(ended, context.Canceled):
		e.Incomplete = "interrupted"
	case ended != nil:
		e.Incomplete = ended.Error()
	}
	summary := s.summary(ctx, s.elapsed)
	summary.Load.Requests, summary.Load.Errors = s.requests, s.errors
	s.audit(ctx, &summary, &e)
	summary.Validity = validity.JudgeSweep(summary, e)
	for _, dir := range s.journals { // audited, and most of the result's size
		os.Remove(filepath.Join(dir, result.FileAcknowledged))
		os.Remove(filepath.Join(dir, result.FileResults))
	}
	return summary, nil
}

// summary returns what is the same for all measurements of the session.
func (s *Session) summary(ctx context.Context, elapsed time.Duration) result.Summary {
	machine := environment.Describe(ctx)
	machine.StoreDisk, machine.CPUs = s.disk, s.cpus.Lists()
	return result.Summary{Envelope: result.Envelope{
		Schema: result.Schema, Kind: result.KindRun,
		Run: result.Run{
			ID: s.cfg.ID, Started: s.started, DurationS: elapsed.Seconds(), Command: s.cfg.Command,
			Store: s.storeSummary(s.before), Scenario: result.Scenario(s.cfg.Scenario),
			Topology: s.site.topology, Targets: s.site.targets, AppHosts: len(s.targets), SharedHost: s.site.sharedHost,
			Commit: environment.Commit(ctx),
		},
		Check:       result.Check{Acknowledged: s.acknowledged, LostWrites: s.lostWrites},
		Environment: machine,
	}}
}

// discard removes everything of a session that measured nothing.
func (s *Session) discard(ctx context.Context) {
	os.RemoveAll(s.cfg.Dir)
	s.removePlace(ctx)
}
