package loss

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/deploy/lab"
	"sagabench/internal/filesystem"
	"sagabench/store/pebblestore"
)

// SyncLogFlag is the flag of the bench server that names pebblestore.Config.SyncLog.
const SyncLogFlag = "pebble-sync-log"

// system is the store and the bench server. With an embedded store they are one process.
type system struct {
	cfg    Config
	server *lab.Server  // of the store; nil: it is embedded, or has a replica
	app    *lab.Process // the bench server; nil: it has not been started

	replicated backend.Started // the servers of a store with a replica
}

func newSystem(cfg Config) *system {
	s := &system{cfg: cfg}
	if s.embedded() {
		s.cfg.Store.Config.Pebble.Dir = filepath.Join(cfg.Dir, "store")
	}
	return s
}

func (s *system) embedded() bool { return s.cfg.Store.Embedded() }

// syncLog records what an embedded store has synced.
func (s *system) syncLog() string { return filepath.Join(s.cfg.Dir, "synced") }

// start starts the store's server, if it has one.
func (s *system) start(ctx context.Context) (err error) {
	if s.embedded() {
		return nil
	}
	if s.cfg.Crash == Lost {
		if s.replicated, err = s.cfg.Servers.Start(ctx); err == nil {
			s.cfg.Store.SetURL(s.replicated.URL())
		}
		return err
	}
	cfg := s.cfg.Servers.Node()
	cfg.PowerLoss = s.cfg.Crash == Machine
	if s.server, err = lab.Kinds[s.cfg.Store.Driver].Start(ctx, cfg); err != nil {
		return err
	}
	s.cfg.Store.SetURL(s.server.URL())
	return nil
}

// describe asks the store for its version, settings and durability.
func (s *system) describe(ctx context.Context) (d result.Store, err error) {
	st, err := s.cfg.Store.Open(ctx)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	settings, err := st.Settings(ctx)
	if err != nil {
		return d, err
	}
	if !s.embedded() { // which knows it by itself
		dir := s.replicated.Dir
		if s.server != nil {
			dir = s.server.Dir()
		}
		disk := filesystem.Of(dir)
		settings = settings.WithFileSystem(disk, filesystem.InMemory(disk))
	}
	return session.StoreOf(settings), nil
}

// startApp starts the bench server and returns its URL.
func (s *system) startApp(ctx context.Context) (url string, err error) {
	program := s.cfg.Program
	if s.embedded() && s.cfg.Crash == Machine {
		program.Args = append(slices.Clone(program.Args), "--"+SyncLogFlag+"="+s.syncLog())
	}
	s.app, url, err = program.Start(ctx, s.cfg.Store, nil)
	return url, err
}

// crash kills the processes of the store.
func (s *system) crash() error {
	switch {
	case s.embedded():
		s.app.Kill()
		return nil
	case s.cfg.Crash == Lost:
		return s.replicated.Lose()
	}
	return s.server.Kill()
}

// killApp kills the bench server: when the store is back, it would go on with its sagas,
// also with those whose end was lost. The error says that it had ended by itself.
func (s *system) killApp() error {
	if !s.embedded() {
		select {
		case <-s.app.Done():
			return fmt.Errorf("the bench server ended before the crash: %v; its log ends with: %s", s.app.Wait(), s.app.Log())
		default:
		}
	}
	s.app.Kill()
	return nil
}

// restart takes from the store what its machine would have lost, and starts its server. A
// replica takes the place of a lost one.
func (s *system) restart(ctx context.Context) error {
	switch {
	case s.cfg.Crash == Lost:
		url, err := s.replicated.Promote(ctx)
		s.cfg.Store.SetURL(url)
		s.cfg.Store.Config.Redis.Replicas = 0 // it has none of its own
		return err
	case s.embedded() && s.cfg.Crash == Machine:
		return pebblestore.LosePower(s.cfg.Store.Config.Pebble.Dir, s.syncLog())
	case s.embedded():
		return nil
	case s.cfg.Crash == Machine:
		if err := s.server.LosePower(); err != nil {
			return err
		}
	}
	return s.server.Restart(ctx)
}

// stop ends what was started.
func (s *system) stop() {
	if s.app != nil {
		s.app.Kill()
	}
	if s.server != nil {
		_ = s.server.Stop() // what it has to say of its end, after a crash, is of no interest
	}
	if s.replicated.Stop != nil {
		_ = s.replicated.Stop()
	}
}
