package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Server is a running server. Its methods may be called from many goroutines.
type Server struct {
	engine    engine
	dir       string
	temporary bool // dir is ours to remove
	port      int

	mu      sync.Mutex
	process *Process
	stopped bool
}

// engine is what a kind of server adds to Server.
type engine struct {
	host    string                                      // to dial
	account string                                      // that runs it and owns its directory; empty: ours
	port    int                                         // to listen on; 0: any that is free
	prepare func(ctx context.Context, dir string) error // before the first start; nil: nothing to do
	command func(dir string, port int) ProcessConfig
	url     func(addr string) string
	dsn     func(addr, database string) string // nil: url

	slowSync bool // see Server.SlowSync
}

const (
	startTimeout = 30 * time.Second // a big log to replay takes seconds
	stopGrace    = 10 * time.Second
	portTries    = 20
)

// errStopped is what Restart answers after Stop.
var errStopped = errors.New("the server was stopped for good")

// startServer starts a server in dir; with none, in a temporary directory.
func startServer(ctx context.Context, dir string, e engine) (_ *Server, err error) {
	s := &Server{engine: e, dir: dir, temporary: dir == ""}
	if s.temporary {
		s.dir, err = tempDir(e.account)
	} else {
		s.dir, err = ownDir(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	for range portTries {
		if s.port, err = freePort(e); err != nil {
			break
		}
		// Somebody may have taken the port since: then only the server's log
		// says so, and another port may do.
		if err = s.start(ctx); err == nil || e.port != 0 || !addressInUse(err) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	return s, nil
}

// ownDir makes a directory, with those above it, that only its owner may enter.
func ownDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir) // some servers change theirs
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o700)
}

func (s *Server) prepare(ctx context.Context) error {
	if s.engine.account != "" {
		if err := giveTo(s.engine.account, s.dir); err != nil {
			return fmt.Errorf("prepare a directory for the server: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.engine.prepare != nil {
		if err := s.engine.prepare(ctx, s.dir); err != nil {
			return err
		}
	}
	if s.engine.slowSync {
		return buildSlowSync(ctx, s.dir)
	}
	return nil
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cfg := s.engine.command(s.dir, s.port)
	cfg.User = s.engine.account
	if s.engine.slowSync {
		cfg.Env = slowSyncEnv(s.dir, s.engine.account)
	}
	process, err := StartProcess(ctx, cfg)
	if err == nil {
		s.process = process
	}
	return err
}

// Addr is the host and port that the server listens on. It never changes.
func (s *Server) Addr() string {
	return hostPort(s.engine.host, s.port)
}

// URL is the address with scheme and password, as clients take it. It never
// changes.
func (s *Server) URL() string { return s.engine.url(s.Addr()) }

// Password is that of URL.
func (s *Server) Password() string {
	u, err := url.Parse(s.URL())
	if err != nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// DSN is the address of a database as database/sql's drivers take it:
// github.com/go-sql-driver/mysql's for MySQL, without options, and for PostgreSQL
// a URL with options. Empty: no database on MySQL, postgres on PostgreSQL. For
// Redis it is the URL.
func (s *Server) DSN(database string) string {
	if s.engine.dsn == nil {
		return s.URL()
	}
	return s.engine.dsn(s.Addr(), database)
}

// Dir is where the server keeps its files.
func (s *Server) Dir() string { return s.dir }

// PID is the id of the server's process, of the last one after Kill or Stop.
func (s *Server) PID() int { return s.current().PID() }

// Log is the end of what the server wrote since its last start, some kilobytes.
func (s *Server) Log() string { return s.current().Log() }

// Signal sends sig to the server's process, for instance SIGSTOP and SIGCONT. Of
// PostgreSQL that is the one that accepts connections: sessions go on.
func (s *Server) Signal(sig os.Signal) error { return s.current().Signal(sig) }

func (s *Server) current() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Stop ends the server for good: it asks it to, kills it when it does not, and
// removes a temporary directory. The error says when the server had to be
// killed or had ended badly before, other than by Kill. Stopping twice is
// allowed.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return errors.Join(s.process.Stop(stopGrace), s.removeDir())
}

// Kill ends the server as a crash would (SIGKILL). The directory stays, and
// Restart starts it again.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	s.process.Kill()
	return nil
}

// Restart starts the server again on the same port and directory, after Kill or
// a crash, or after asking it to end when it still runs.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	_ = s.process.Stop(stopGrace) // however it ended, it is gone now
	return s.start(ctx)
}

func (s *Server) removeDir() error {
	if !s.temporary {
		return nil
	}
	return removeDir(filepath.Dir(s.dir))
}

func addressInUse(err error) bool {
	var failed *startError
	return errors.As(err, &failed) &&
		strings.Contains(strings.ToLower(failed.log), "address already in use")
}
