package sqlnodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"sagabench/deploy/lab"
)

const followTimeout = 30 * time.Second // until the replica follows; a test machine may be busy

// Replicated is a primary with a replica.
type Replicated struct {
	engine           engine
	primary, replica *lab.Server

	mu     sync.Mutex
	resume func() // of a paused replica
}

// engine is what differs between the kinds of servers.
type engine interface {
	// settings are defaults of both servers. replicaSettings hold whatever Config.Settings say.
	settings() map[string]string
	replicaSettings() map[string]string
	// follow makes the replica follow, and returns when it does.
	follow(ctx context.Context, primary, replica *lab.Server) error
	// receiver returns the process that receives the primary's commits.
	receiver(ctx context.Context, replica *lab.Server) (pid int, err error)
	promote(ctx context.Context, replica *lab.Server) error
}

var engines = map[*lab.Kind]engine{lab.MySQL: mysqlEngine{}, lab.Postgres: postgresEngine{}}

// Start starts a primary and a replica, and returns when the replica has all that the
// primary has, and the primary waits for it. The settings are those of both, and may be all
// but port; the primary's may end that it waits. In Config.Dir, each has a directory of its
// own. Oracle's MySQL is refused.
func Start(ctx context.Context, kind *lab.Kind, cfg lab.Config) (*Replicated, error) {
	r := &Replicated{engine: engines[kind]}
	if err := r.start(ctx, kind, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start a server with a replica: %w", err), r.Stop())
	}
	return r, nil
}

func (r *Replicated) start(ctx context.Context, kind *lab.Kind, cfg lab.Config) (err error) {
	if r.engine == nil {
		return errors.New("it is neither a MariaDB nor a PostgreSQL")
	}
	if _, ok := cfg.Settings["port"]; ok {
		return errors.New("settings: port: the two servers cannot share one")
	}
	if r.primary, err = kind.Start(ctx, part(cfg, "primary", r.engine.settings(), cfg.Settings)); err != nil {
		return err
	}
	standby := part(cfg, "replica", r.engine.settings(), cfg.Settings, r.engine.replicaSettings())
	standby.StandbyOf = r.primary
	if r.replica, err = kind.Start(ctx, standby); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	return r.engine.follow(ctx, r.primary, r.replica)
}

// part returns the configuration of one of the servers. Later settings replace earlier ones.
func part(cfg lab.Config, name string, settings ...map[string]string) lab.Config {
	if cfg.Dir != "" {
		cfg.Dir = filepath.Join(cfg.Dir, name)
	}
	cfg.Settings = make(map[string]string)
	for _, more := range settings {
		maps.Copy(cfg.Settings, more)
	}
	return cfg
}

// Nodes returns the two servers, first the one that was started as the primary. To stop
// them, use Stop.
func (r *Replicated) Nodes() []*lab.Server { return []*lab.Server{r.primary, r.replica} }

// Promote makes the replica a server of its own, which waits for nobody, once it has applied
// all that it has received. The primary must have ended.
func (r *Replicated) Promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	if err := r.engine.promote(ctx, r.replica); err != nil {
		return fmt.Errorf("promote the replica: %w", err)
	}
	return nil
}

// Stop ends both servers for good, also if the replica is paused: see [lab.Server.Stop].
func (r *Replicated) Stop() error {
	r.Resume()
	var errs [2]error
	var both sync.WaitGroup
	for i, server := range r.Nodes() {
		if server != nil {
			both.Go(func() { errs[i] = server.Stop() })
		}
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// Resume lets a paused replica go on: see Pause.
func (r *Replicated) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resume != nil {
		r.resume()
		r.resume = nil
	}
}

// poll calls check until it says no more why not yet, or fails.
func poll(ctx context.Context, check func() (why string, err error)) error {
	var failed error
	err := lab.Poll(ctx, func(context.Context) error {
		why, err := check()
		if failed = err; err != nil || why == "" {
			return nil
		}
		return errors.New(why)
	})
	return cmp.Or(failed, err)
}
