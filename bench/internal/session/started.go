package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/deploy/lab"
	"sagabench/internal/fill"
	"sagabench/internal/format"
	"sagabench/saga"
	"sagabench/store/open"
)

// Started is a bench server that is started for the session and stopped at its end. On
// a store's server the sagas get a key prefix or a schema of their own, which is removed
// at the end. An embedded store without a directory gets one that is removed, too.
type Started struct {
	Store        open.Target
	StoreServers backend.Started // of the store, if they were started for the session
	Program      Program
	Preload      int64 // finished sagas to put into the store before

	process *lab.Process
	log     *os.File // stderr of the process, open as long as it runs
}

// Program starts a bench server that listens on a free port and prints Announce and its
// URL on a line of stdout.
type Program struct {
	Path     string
	Args     []string
	Env      func(open.Target) []string // returns the environment that selects the store
	Announce string
}

const (
	startTimeout = 30 * time.Second // a store with much in it takes a while to open
	stopTimeout  = 15 * time.Second
)

var errNoServer = errors.New("the bench server did not say where it listens")

// Start starts the program on a store, waits until it serves, and returns its URL. Its
// standard error goes to stderr, which may be nil.
func (p Program) Start(ctx context.Context, store open.Target, stderr io.Writer) (process *lab.Process, url string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	process, err = lab.StartProcess(ctx, lab.ProcessConfig{
		Path: p.Path, Args: p.Args, Env: p.Env(store), Stderr: stderr,
		Ready: func(_ context.Context, started *lab.Process) error {
			for line := range strings.Lines(started.Log()) {
				if u, ok := strings.CutPrefix(strings.TrimSpace(line), p.Announce); ok {
					url = u
					return nil
				}
			}
			return errNoServer
		},
	})
	return process, url, err
}

func (w *Started) describe(cfg Config) site {
	target := w.Store.Fresh()
	retention := target.Config.Retention.Seconds()
	s := site{store: &target, ownPlace: !target.Embedded(), sharedHost: true, preloaded: w.Preload, retentionS: &retention}
	s.storePIDs, s.storeDir, s.replicas = w.StoreServers.PIDs, w.StoreServers.Dir, w.StoreServers.Replicas
	switch {
	case target.Embedded():
		s.topology = "load and app with its embedded store on one machine, in two processes"
		if target.Config.Pebble.Dir == "" {
			s.temporary = storeDir(cfg.Dir)
			target.Config.Pebble.Dir = s.temporary
		}
	case local(target.URL()):
		s.topology = "load, app and store on one machine, in processes of their own"
	default:
		s.topology = "load and app on one machine, store on another"
	}
	if len(s.replicas) > 0 {
		s.topology += "; the store is a primary with a replica, and its costs are the sums of both"
	}
	return s
}

// storeDir returns the directory of an embedded store that lives as long as the session.
// It is on the disk of the result: a temporary directory may be in memory, where an fsync
// costs nothing.
func storeDir(dir string) string { return filepath.Join(dir, "store") }

func (w *Started) check(context.Context, Config) error { return nil }

func (w *Started) start(ctx context.Context, cfg Config, store *open.Target) (_ []endpoint, err error) {
	if err := w.preload(ctx, cfg, store); err != nil {
		return nil, err
	}
	cfg.status("starting the bench server")
	if w.log, err = result.Create(cfg.Dir, "server.log"); err != nil {
		return nil, err
	}
	var url string
	if w.process, url, err = w.Program.Start(ctx, *store, w.log); err != nil {
		w.closeLog()
		return nil, err
	}
	e := benchEndpoint(url, cfg.Scenario)
	e.pid = w.process.PID()
	return []endpoint{e}, nil
}

// watch ends when the server does: there is nothing left to measure.
func (w *Started) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-w.process.Done():
			end(w.ended())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

// ended reports a server that was not told to stop.
func (w *Started) ended() error {
	return fmt.Errorf("the bench server ended in the middle: %v", w.process.Wait())
}

func (w *Started) stop(cfg Config) error {
	defer w.closeLog()
	select {
	case <-w.process.Done():
		return w.ended()
	default:
		cfg.status("stopping the bench server")
		return w.process.Stop(stopTimeout)
	}
}

// closeLog removes a log that is empty.
func (w *Started) closeLog() {
	info, err := w.log.Stat()
	w.log.Close()
	if err == nil && info.Size() == 0 {
		os.Remove(w.log.Name())
	}
}

// progressEvery is how often preload reports its progress.
const progressEvery = 5 * time.Second

// preload puts finished sagas into the store: like those of the session, but without
// calls.
func (w *Started) preload(ctx context.Context, cfg Config, target *open.Target) (err error) {
	if w.Preload == 0 {
		return nil
	}
	s, err := target.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps := make([]saga.Step, cfg.Scenario.Steps)
	for i := range steps {
		if n := cfg.Scenario.Payload; n > 0 {
			steps[i].Payload = `"` + strings.Repeat("x", n) + `"`
		}
	}
	body, err := json.Marshal(saga.Saga{Steps: steps})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var reported time.Time
	return fill.Run(ctx, s, w.Preload, len(steps), body, func(done int64) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(reported) > progressEvery || done == w.Preload {
			reported = time.Now()
			cfg.status("filling the store: %d of %s", done, format.Plural(w.Preload, "saga"))
		}
	})
}

// benchEndpoint is the endpoint of a bench server, which makes the sagas.
func benchEndpoint(url string, s server.Scenario) endpoint {
	return endpoint{load: load.Target{URL: url + "/bench/saga?" + s.Query()}, metrics: url + "/metrics"}
}
