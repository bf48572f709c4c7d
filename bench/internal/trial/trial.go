// Package trial makes one measured run from beginning to end: it looks at the
// store, drives the load, takes the costs, audits what is left, judges the
// result and writes it down.
//
// [Run] starts a bench server as a child process, on a store that is fresh;
// [Load] drives servers that already run. Both return a summary even when the
// run was interrupted or went wrong half-way: what was measured until then is
// kept, and marked incomplete.
package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sagabench/bench/internal/audit"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/probe"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/server"
	"sagabench/internal/secret"
	"sagabench/lua"
	"sagabench/store"
	"sagabench/store/open"
)

// Config is what both kinds of run have in common.
type Config struct {
	ID       string          // see report.RunID
	Command  string          // as typed, without secrets
	Dir      string          // of the result; must not exist or be empty
	Scenario server.Scenario // of the sagas
	Protocol Protocol        // of the servers; empty: ProtocolBench
	Token    secret.Text     // shown to them, if there is one
	Load     load.Config     // Targets, Token and Dir are set here
	Fill     int64           // finished sagas that Run puts into the store before
	StorePID int             // of the store's server, where it is known; 0: looked for, if it is on this machine
	Status   func(string)    // told what is being done; may be nil
}

// trial is a run under way.
type trial struct {
	cfg      Config
	target   *open.Target // nil: the store is not known, nor audited
	probe    probe.Config
	topology string
	own      bool // the place of the sagas on the store's server was made for this run
	shared   bool // load, app or store on one machine

	before  store.Settings
	left    int64 // sagas in the store before
	started time.Time
	result  load.Result
	usage   probe.Usage

	died string // why the load ended early, other than by ctx
}

func (t *trial) status(format string, args ...any) {
	if t.cfg.Status != nil {
		t.cfg.Status(fmt.Sprintf(format, args...))
	}
}

// inspect opens the store for a moment: what cannot be opened is an error before
// anything is written. A place that is made for the run is removed again: whoever
// may not do that learns it now.
func (t *trial) inspect(ctx context.Context) (err error) {
	s, err := t.target.Open(ctx)
	if err != nil {
		if ctx.Err() != nil { // it may have been half-way
			t.forsake(ctx)
		}
		return err
	}
	defer s.Close()
	defer func() { err = errors.Join(err, t.remove(ctx, s)) }()
	if t.before, err = s.Settings(ctx); err != nil {
		return err
	}
	return store.Walk(ctx, s, store.Query{Limit: 1000}, func(store.Record) { t.left++ })
}

// drive sends the load to the servers and measures what it costs.
func (t *trial) drive(ctx context.Context, targets []string) error {
	t.probe.Every, t.probe.Timeout = probe.Default().Every, probe.Default().Timeout
	if t.target != nil {
		t.probe.Store = t.storeServer()
	}
	cfg := t.cfg.Load
	cfg.Dir = t.cfg.Dir
	cfg.Token, t.probe.AppToken = t.cfg.Token, t.cfg.Token
	for _, base := range targets {
		target, metrics, err := t.cfg.target(base)
		if err != nil {
			return err
		}
		cfg.Targets = append(cfg.Targets, target)
		t.probe.AppMetrics = append(t.probe.AppMetrics, metrics)
	}
	sampler, err := probe.New(ctx, t.probe)
	if err != nil {
		return err
	}
	defer sampler.Close()
	cfg.Begin, cfg.End = sampler.Begin, sampler.End
	t.started = time.Now()
	t.result, err = load.Run(ctx, cfg)
	if t.result.Elapsed > 0 {
		t.usage = sampler.Usage()
	}
	return err
}

// storeServer is what the probe has to know of the store.
func (t *trial) storeServer() probe.Server {
	s := probe.Server{
		Driver: t.target.Driver, URL: t.target.URL(), Here: local(t.target.URL()), PID: t.cfg.StorePID,
		Schema: t.target.Schema(),
	}
	for _, script := range lua.All() {
		s.Scripts = append(s.Scripts, script.Source)
	}
	return s
}

// finish audits the store, judges, and writes the result. It goes on when ctx
// has ended: what was measured is worth keeping.
func (t *trial) finish(ctx context.Context) (report.Summary, error) {
	ctx = context.WithoutCancel(ctx)
	s := report.Summary{
		Schema: report.Schema,
		Run: report.Run{
			ID: t.cfg.ID, Started: t.started, DurationS: t.result.Elapsed.Seconds(), Command: t.cfg.Command,
			Store: t.storeSummary(t.before), Scenario: report.Scenario(t.cfg.Scenario),
			Topology: t.topology, SharedHost: t.shared, Commit: probe.Commit(ctx),
		},
		Load:        t.result.Load(),
		LatencyMS:   report.LatencyOf(t.result.Latency),
		ServiceMS:   report.LatencyOf(t.result.Service),
		CostPerSaga: t.usage.PerSaga(t.result.Sagas()),
		Check:       report.Check{Acknowledged: t.result.Acknowledged},
		Environment: probe.Environment(ctx),
	}
	e := t.usage.Evidence()
	e.Incomplete = t.result.Incomplete
	if t.died != "" {
		e.Incomplete = t.died
	}
	e.Planned = t.cfg.Load.Duration
	e.Intervals = t.result.Intervals
	e.LateOwn = t.result.LateOwn
	e.Clamped = t.result.Clamped
	if t.target != nil {
		if err := t.audit(ctx, &s, &e); err != nil {
			e.Failures = append(e.Failures, fmt.Sprintf("the audit: %v", err))
		}
	}
	s.Validity = report.Judge(s, e)
	return s, report.Write(t.cfg.Dir, s)
}

func (t *trial) audit(ctx context.Context, s *report.Summary, e *report.Evidence) (err error) {
	t.status("auditing the store")
	st, err := t.target.Open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	defer func() { err = errors.Join(err, t.remove(ctx, st)) }()
	after, err := st.Settings(ctx)
	if err != nil {
		return err
	}
	summary := t.storeSummary(after)
	e.After = &summary
	found, err := audit.Journal(ctx, st, t.cfg.Dir)
	if err != nil {
		return err
	}
	s.Check = found.Check
	stored := found.Sagas - t.left
	e.StoreSagas, e.Leftovers = &stored, &t.left
	e.Findings = found.Findings
	return nil
}

// dropper is a store that can undo its own making.
type dropper interface {
	Drop(ctx context.Context) error
}

// remove takes back the place that was made for this run, if one was. It does so
// when ctx has ended, too.
func (t *trial) remove(ctx context.Context, s store.Store) (err error) {
	if !t.own {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	switch s := s.(type) {
	case dropper:
		err = s.Drop(ctx)
	case store.Wiper:
		err = s.Wipe(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove what was made for the run: %w", err)
	}
	return nil
}

// forsake removes it from a store that is not open.
func (t *trial) forsake(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if s, err := t.target.Open(ctx); err == nil {
		_ = t.remove(ctx, s)
		s.Close()
	}
}

// discard is for a run that measured nothing: it leaves nothing behind.
func (t *trial) discard(ctx context.Context) {
	os.RemoveAll(t.cfg.Dir)
	if t.own {
		t.forsake(ctx)
	}
}

func (t *trial) storeSummary(settings store.Settings) report.Store {
	if t.target == nil {
		return report.Store{Settings: map[string]string{}}
	}
	return report.Store{
		Driver: settings.Driver, Version: settings.Version,
		Settings: settings.Values, Durability: settings.Durability.String(),
	}
}

// makeDir makes the result directory. One with something in it is another
// result, which is not to be overwritten.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("the result directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the result directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the result directory %s is not empty: choose another", dir)
	}
	return nil
}

// storeDir is where an embedded store lives for one run: on the disk that the
// result is on, for a temporary directory may be in memory, where an fsync
// costs nothing.
func storeDir(dir string) string { return filepath.Join(dir, "store") }
