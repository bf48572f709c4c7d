// Package loss crashes a store under load, and reports which acknowledged sagas that lost.
//
// A crash of the process is SIGKILL for all processes of the store: what they had written
// is in the kernel, and survives. A crash of the machine is a loss of power: what was not
// synced is gone. The files of a server are changed back to what they were when they were
// last synced, by a library that records the writes ([lab.Server.LosePower]); those of
// Pebble are cut ([pebblestore.LosePower]). Nothing here asks the store what it should
// have kept.
package loss

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"sagabench/bench/internal/audit"
	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/bench/internal/session"
	"sagabench/internal/secret"
	"sagabench/store/open"
)

// Crash says what crashes.
type Crash string

// The crashes.
const (
	Process Crash = "process" // kill -9 of the store
	Machine Crash = "machine" // loss of power
	Lost    Crash = "lost"    // loss of the primary's machine with its disk; its replica takes over
)

// Config says what to crash. Start from Default.
type Config struct {
	Store   open.Target     // with its settings; Run sets the directory, or the URL of the server that it starts
	Servers backend.Servers // that server, for Lost with a replica; without meaning for an embedded store
	Program session.Program // the bench server
	Token   secret.Text     // of the bench server, if it wants one

	Crash    Crash
	Scenario server.Scenario
	InFlight int
	// Duration is the time under load until the crash. A random part of up to a second,
	// and of at most a half, is taken off: what a store syncs once a second must not be
	// in step with it.
	Duration time.Duration

	Dir    string       // gets the files of the run, which Run removes
	Status func(string) // called with what is being done; may be nil
}

// Default returns a crash of the machine after 3 s, without Store, Program and Dir.
func Default() Config {
	return Config{Crash: Machine, Scenario: server.DefaultScenario(), InFlight: 64, Duration: 3 * time.Second}
}

// Validate checks the configuration. Its error names the field and the limit.
func (c Config) Validate() error {
	switch {
	case c.Crash != Process && c.Crash != Machine && c.Crash != Lost:
		return fmt.Errorf("crash: %q, must be %s, %s or %s", c.Crash, Process, Machine, Lost)
	case c.Crash == Lost && !c.Servers.Replicated():
		return fmt.Errorf("crash: %s: the store has no replica that could take over: set replicas: 1", Lost)
	case c.Crash != Lost && c.Servers.Replicated():
		return fmt.Errorf("crash: %s: it is of one server: with a replica, want %s", c.Crash, Lost)
	case c.InFlight < 1:
		return fmt.Errorf("in flight: %d, must be at least 1", c.InFlight)
	case c.Duration <= 0:
		return fmt.Errorf("duration: %v, must be more than 0", c.Duration)
	case c.Store.Config.Retention < c.Duration+auditTimeout:
		return fmt.Errorf("retention of finished sagas: %v, must be at least %v: what expires is not lost", c.Store.Config.Retention, c.Duration+auditTimeout)
	}
	return c.Scenario.Validate()
}

// Result is what a crash lost.
type Result struct {
	Crash  Crash        `json:"crash"`
	Store  result.Store `json:"store"`   // read from it before the load
	AfterS float64      `json:"after_s"` // of load came the crash

	// Check counts the sagas after the crash. Lost are acknowledged sagas that are gone, or
	// whose acknowledged end is. Unfinished ones were in progress, and are not lost.
	Check result.Check `json:"check"`
	// WindowMS is the time from the acknowledgement of the first lost saga to the crash, or
	// to the last acknowledgement, if that was still on its way then. 0: none is lost.
	WindowMS float64  `json:"window_ms"`
	Findings []string `json:"findings,omitempty"` // of the audit, the first few
}

const (
	auditTimeout = time.Minute            // restart and audit
	lastAnswers  = 200 * time.Millisecond // for answers that are under way when the store crashes
)

// Run starts a store and a bench server, sends sagas, crashes the store in the middle,
// restarts it or promotes its replica, and audits it. It returns an error if one of these was
// not possible, also if a store does not start again; a loss is no error. Machine requires
// Linux.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	if err := cfg.Validate(); err != nil {
		return res, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return res, err
	}
	if cfg.Dir, err = os.MkdirTemp(cfg.Dir, "crash-*"); err != nil {
		return res, err
	}
	defer os.RemoveAll(cfg.Dir)
	s := newSystem(cfg)
	cfg.status("starting the store")
	if err := s.start(ctx); err != nil {
		return res, err
	}
	defer s.stop()
	res.Crash = cfg.Crash
	if res.Store, err = s.describe(ctx); err != nil {
		return res, err
	}
	url, err := s.startApp(ctx)
	if err != nil {
		return res, err
	}

	cfg.status("sending sagas until the crash")
	began := time.Now()
	crashed, err := s.loadUntilCrash(ctx, url)
	if err != nil {
		return res, err
	}
	res.AfterS = crashed.Sub(began).Seconds()

	cfg.status("restarting the store, and auditing it")
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	if err := s.restart(ctx); err != nil {
		return res, fmt.Errorf("after the crash: %w", err)
	}
	found, err := s.audit(ctx)
	if err != nil {
		return res, fmt.Errorf("audit the store after the crash: %w", err)
	}
	res.Check, res.Findings = found.Check, found.Findings
	if res.Check.Acknowledged == 0 {
		return res, errors.New("no saga was acknowledged before the crash")
	}
	if !found.FirstLost.IsZero() {
		if crashed.Before(found.LastAcknowledged) {
			crashed = found.LastAcknowledged
		}
		res.WindowMS = crashed.Sub(found.FirstLost).Seconds() * 1000
	}
	return res, nil
}

func (c Config) status(text string) {
	if c.Status != nil {
		c.Status(text)
	}
}

// loadUntilCrash sends sagas, crashes the store under them, and returns when it did that.
// Afterwards neither the store nor the bench server runs.
func (s *system) loadUntilCrash(ctx context.Context, url string) (crashed time.Time, err error) {
	cfg := load.Default()
	cfg.Targets = []load.Target{{URL: url + "/bench/saga?" + s.cfg.Scenario.Query()}}
	cfg.Token, cfg.InFlight, cfg.Dir = s.cfg.Token, s.cfg.InFlight, s.journal()
	cfg.Warmup, cfg.Grace = 0, lastAnswers
	cfg.Duration = s.cfg.Duration + auditTimeout // the crash ends it

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	early := rand.N(min(time.Second, s.cfg.Duration/2) + 1)
	done := make(chan error, 1)
	timer := time.AfterFunc(s.cfg.Duration-early, func() {
		crashed = time.Now()
		err := s.crash()
		stop()
		done <- err
	})
	_, err = load.Run(ctx, cfg)
	if timer.Stop() {
		if err == nil {
			err = context.Cause(ctx)
		}
		return crashed, fmt.Errorf("before the crash: %w", err)
	}
	err = errors.Join(<-done, err, s.killApp())
	return crashed, err
}

// audit compares the store with what was acknowledged.
func (s *system) audit(ctx context.Context) (found audit.Result, err error) {
	st, err := s.cfg.Store.Open(ctx)
	if err != nil {
		return found, err
	}
	defer st.Close()
	return audit.Journals(ctx, st, s.cfg.Store.Config.Retention, s.journal())
}

func (s *system) journal() string { return filepath.Join(s.cfg.Dir, "load") }
