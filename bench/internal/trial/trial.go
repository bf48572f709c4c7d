// Package trial makes a measured run from beginning to end: it looks at the
// store, drives the load, takes the costs, audits what is left, judges the
// result and writes it down.
//
// [Run] measures once, [Sweep] many times on the same servers and store. Both take
// [Servers]: one that is started as a child process, on a store that is fresh ([Own]),
// or those that run already ([Running]). Both return a summary even when the run was
// interrupted or went wrong half-way: what was measured until then is kept, and
// marked incomplete.
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
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/bench/internal/validity"
	"sagabench/internal/filesystem"
	"sagabench/internal/secret"
	"sagabench/lua"
	"sagabench/store"
	"sagabench/store/open"
)

// Config is what all runs have in common.
type Config struct {
	ID       string          // see report.RunID
	Command  string          // as typed, without secrets
	Dir      string          // of the result; must not exist or be empty
	Scenario server.Scenario // of the sagas
	Protocol Protocol        // of the servers; empty: ProtocolBench
	Token    secret.Text     // shown to them, if there is one
	Load     load.Config     // Targets, Token and Dir are set here
	Fill     int64           // finished sagas that are put into an Own server's store before
	StorePID int             // of the store's server, where it is known; 0: looked for, if it is on this machine
	StoreDir string          // its files, where they are known
	Status   func(string)    // told what is being done; may be nil

	Watch func(result.Sample) // told what was used in each second of a measured part; may be nil
}

// Servers are what is driven: those of [Own] or of [Running].
type Servers struct{ trial func(Config) *trial }

// trial is a run under way.
type trial struct {
	cfg Config
	// serve has the servers driven, and ends what it began for that. When it ends with
	// an error before drive was called, it was for nothing.
	serve func(ctx context.Context, drive func(context.Context) error) error
	// reach asks whether the servers are there; nil: they are watched.
	reach func(context.Context) error

	target   *open.Target // nil: the store is not known, nor audited
	probe    probe.Config
	topology string
	own      bool // the place of the sagas on the store's server was made for this run
	shared   bool // load, app or store on one machine

	before  store.Settings
	left    int64 // sagas in the store before
	started time.Time

	made      bool   // the directory of the result
	temporary string // directory of a store that is there for the run only

	targets []load.Target // of the servers, once they are known
	died    string        // why the load ended early, other than by ctx
}

// measurement is what was seen of the load, and what it used meanwhile.
type measurement struct {
	load  load.Result
	usage probe.Usage
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
	if t.before, err = t.settings(ctx, s); err != nil {
		return err
	}
	return store.Walk(ctx, s, store.Query{Limit: 1000}, func(store.Record) { t.left++ })
}

// settings are the store's own, and what is known of where its files are.
func (t *trial) settings(ctx context.Context, s store.Store) (store.Settings, error) {
	settings, err := s.Settings(ctx)
	if err != nil || t.cfg.StoreDir == "" {
		return settings, err
	}
	disk := filesystem.Of(t.cfg.StoreDir)
	return settings.WithFileSystem(disk, filesystem.InMemory(disk)), nil
}

// aim sets the servers to drive.
func (t *trial) aim(servers []string) error {
	t.started = time.Now()
	t.probe.Every, t.probe.Timeout = probe.Default().Every, probe.Default().Timeout
	t.probe.AppToken, t.probe.Watch = t.cfg.Token, t.cfg.Watch
	if t.target != nil {
		t.probe.Store = t.storeServer()
	}
	for _, base := range servers {
		target, metrics, err := t.cfg.target(base)
		if err != nil {
			return err
		}
		t.targets = append(t.targets, target)
		t.probe.AppMetrics = append(t.probe.AppMetrics, metrics)
	}
	return nil
}

// measure sends a load to the servers and takes what it costs.
func (t *trial) measure(ctx context.Context, cfg load.Config) (m measurement, err error) {
	cfg.Token, cfg.Targets = t.cfg.Token, t.targets
	sampler, err := probe.New(ctx, t.probe)
	if err != nil {
		return m, err
	}
	defer sampler.Close()
	cfg.Begin, cfg.End = sampler.Begin, sampler.End
	m.load, err = load.Run(ctx, cfg)
	if m.load.Elapsed > 0 {
		m.usage = sampler.Usage()
	}
	return m, err
}

// once is the load of a run that measures once. What was measured before it went
// wrong is kept.
func (t *trial) once(ctx context.Context) (m measurement, err error) {
	cfg := t.cfg.Load
	cfg.Dir = t.cfg.Dir
	return t.measure(ctx, cfg)
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

// end finishes a run that may have gone wrong: what was measured until then is kept,
// and of a run that measured nothing, nothing.
func (t *trial) end(ctx context.Context, m measurement, wrong error) (result.Summary, error) {
	if wrong != nil {
		if m.load.Elapsed == 0 {
			t.discard(ctx)
			return result.Summary{}, wrong
		}
		m.load.Incomplete = wrong.Error()
	}
	return t.finish(ctx, m)
}

// finish audits the store, judges, and writes the result. It goes on when ctx
// has ended: what was measured is worth keeping.
func (t *trial) finish(ctx context.Context, m measurement) (result.Summary, error) {
	ctx = context.WithoutCancel(ctx)
	s := t.summary(ctx, m.load.Elapsed)
	s.Load = m.load.Load()
	s.LatencyMS, s.ServiceMS = result.LatencyOf(m.load.Latency), result.LatencyOf(m.load.Service)
	s.CostPerSaga = m.usage.PerSaga(m.load.Sagas())
	s.Check.Acknowledged = m.load.Acknowledged
	e := m.evidence(t.cfg.Load.Duration)
	s.Resources = e.Resources
	s.Timeline = result.TimelineOf(m.load.Intervals, m.usage.Timeline)
	if t.died != "" {
		e.Incomplete = t.died
	}
	t.audit(ctx, &s, &e, t.cfg.Dir)
	s.Validity = validity.Judge(s, e)
	return s, report.WriteRun(t.cfg.Dir, s)
}

// summary is what is the same for all that was measured on the store.
func (t *trial) summary(ctx context.Context, elapsed time.Duration) result.Summary {
	return result.Summary{
		Envelope: result.Envelope{
			Schema: result.Schema, Kind: result.KindRun,
			Run: result.Run{
				ID: t.cfg.ID, Started: t.started, DurationS: elapsed.Seconds(), Command: t.cfg.Command,
				Store: t.storeSummary(t.before), Scenario: result.Scenario(t.cfg.Scenario),
				Topology: t.topology, AppHosts: len(t.targets), SharedHost: t.shared, Commit: probe.Commit(ctx),
			},
			Environment: probe.Environment(ctx),
		},
	}
}

// evidence is what the judge has to know of a measurement that was to take so
// long.
func (m measurement) evidence(planned time.Duration) validity.Evidence {
	e := m.usage.Evidence()
	e.Incomplete = m.load.Incomplete
	e.Planned = planned
	e.Intervals = m.load.Intervals
	e.LateOwn = m.load.LateOwn
	e.Clamped = m.load.Clamped
	return e
}

// audit compares the store with the journals in the directories, if the store is
// known.
func (t *trial) audit(ctx context.Context, s *result.Summary, e *validity.Evidence, dirs ...string) {
	if t.target == nil {
		return
	}
	if err := t.tryAudit(ctx, s, e, dirs); err != nil {
		e.Failures = append(e.Failures, fmt.Sprintf("the audit: %v", err))
	}
}

func (t *trial) tryAudit(ctx context.Context, s *result.Summary, e *validity.Evidence, dirs []string) (err error) {
	t.status("auditing the store")
	st, err := t.target.Open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	defer func() { err = errors.Join(err, t.remove(ctx, st)) }()
	after, err := t.settings(ctx, st)
	if err != nil {
		return err
	}
	summary := t.storeSummary(after)
	e.After = &summary
	found, err := audit.Journals(ctx, st, t.target.Retention(), dirs...)
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
	if !t.made {
		return
	}
	os.RemoveAll(t.cfg.Dir)
	if t.own {
		t.forsake(ctx)
	}
}

func (t *trial) storeSummary(settings store.Settings) result.Store {
	if t.target == nil {
		return result.Store{Settings: map[string]string{}}
	}
	return result.Store{
		Driver: settings.Driver, Version: settings.Version,
		Settings: settings.Values, Durability: settings.Durability.String(),
	}
}

// storeDir is where an embedded store lives for one run: on the disk that the
// result is on, for a temporary directory may be in memory, where an fsync
// costs nothing.
func storeDir(dir string) string { return filepath.Join(dir, "store") }
