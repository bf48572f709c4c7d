package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Kinds are the kinds of servers by the name of the store's driver.
var Kinds = map[string]*Kind{"redis": Redis, "mysql": MySQL, "postgres": Postgres}

// Kind describes one kind of server.
type Kind struct {
	name             string // in errors
	binaries         string // alternatives, separated by "|"
	debian, homebrew string // packages with the binaries
	account          string // of the package: runs the server if we are root
	listenSetting    string // has the addresses to listen on
	binariesVariable string // environment variable: see Binaries
	imageBinaries    string // further alternatives in container images, each after "|"

	// engine returns how to run s.binary.
	engine func(ctx context.Context, s *Server) (engine, error)
}

// engine is what differs between kinds of servers.
type engine interface {
	// defaults returns the settings that Config.Settings override.
	defaults() map[string]string
	// prepare sets s.password and fills an empty s.dir. It is called before each
	// attempt to start the server on a port.
	prepare(ctx context.Context, s *Server) error
	// process returns the command for s.settings and s.port.
	process(s *Server) ProcessConfig
	// url and dsn return addresses for clients: see Server.
	url(s *Server) string
	dsn(s *Server, database string) string
}

// Config says how to start a server.
type Config struct {
	// Binary is a name on PATH or a path. Empty: the installed server. The name redis-5.0
	// or mysql-8.0 is the first of Kind.Binaries of that version.
	Binary string

	// Image is a container image with the server, in place of Binary. It runs in a
	// container of docker or podman, the first of them on PATH, with the network and the
	// process ids of this machine. Start downloads it if necessary: see [Pull].
	Image string

	CPUs float64 // cores that the server may use; 0: as we

	// Settings override the defaults: one port of the loopback interface, no
	// persistence for Redis, no binlog for MySQL; everything else is the server's own
	// default. Their names are those of the server's configuration file.
	//
	//   - Redis: a value of several lines makes several directives; "" stays "". The
	//     values of requirepass and masterauth are the passwords themselves, without quotes.
	//   - MySQL: words are joined by underscores, "sync_binlog". An empty value is an
	//     option without a value, "log_bin".
	Settings map[string]string

	// Dir has the server's files; the password is in Dir.secret. Start makes and fills
	// it if necessary, and gives it to the server's account. Empty: a temporary
	// directory, which Stop removes.
	Dir string

	// StandbyOf is a PostgreSQL. A new Dir gets a copy of its files, and the server follows
	// it. Other kinds ignore it. Package sqlnodes sets it.
	StandbyOf *Server

	// SlowSync enables Server.SlowSync, PowerLoss enables Server.LosePower. They require
	// Linux and a C compiler.
	SlowSync, PowerLoss bool
}

// Server is a running server. Its methods may be called concurrently.
type Server struct {
	engine    engine
	binary    string
	container *container // nil: binary is installed
	standbyOf *Server
	account   string // runs the server and owns dir; empty: ours
	settings  map[string]string
	password  string
	dir       string
	temporary bool // Stop removes dir
	host      string
	port      int
	slowSync  bool
	powerLoss bool
	cpus      float64

	mu      sync.Mutex
	process *Process
	stopped bool
}

const (
	startTimeout = time.Minute // replaying a big log, or copying the data of another node, takes seconds
	stopTimeout  = 10 * time.Second
	portTries    = 20
)

var errStopped = errors.New("the server was stopped for good")

// Host returns the address that clients connect to if a server has the settings.
func (k *Kind) Host(settings map[string]string) string { return dialHost(settings[k.listenSetting]) }

// Start starts a server and waits until it answers. Clients need the password in
// [Server.URL]. If root starts the server, it runs as the account of its package. Start
// returns ErrNotInstalled if there is no binary. If the server refuses its settings, the
// error holds the end of its log.
func (k *Kind) Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	s := &Server{dir: cfg.Dir, temporary: cfg.Dir == "", standbyOf: cfg.StandbyOf, slowSync: cfg.SlowSync, powerLoss: cfg.PowerLoss, cpus: cfg.CPUs}
	if cfg.Image == "" {
		if s.binary, err = k.find(ctx, cfg.Binary); err != nil {
			return nil, err
		}
	}
	if s.account, err = serverAccount(k.account); err != nil {
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	if cfg.Image != "" {
		if err = k.useImage(ctx, s, cfg.Image); err != nil {
			return nil, err
		}
	}
	if s.engine, err = k.engine(ctx, s); err != nil {
		return nil, err
	}
	s.settings = s.engine.defaults()
	maps.Copy(s.settings, cfg.Settings)
	for name, value := range s.settings {
		if strings.EqualFold(name, "daemonize") && value != "no" {
			return nil, fmt.Errorf("start %s: settings: %s: %q, must be no: what is not our child cannot be stopped", k.name, name, value)
		}
	}
	s.host = k.Host(s.settings)
	fixedPort, err := portSetting(s.settings)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	if err = s.makeDir(); err != nil {
		err = fmt.Errorf("make a directory for the server: %w", err)
	} else {
		err = s.startOnPort(ctx, fixedPort)
	}
	if err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	return s, nil
}

// makeDir makes the server's directory, which only its account may enter.
func (s *Server) makeDir() (err error) {
	if s.temporary {
		s.dir, err = tempDir(s.account)
	} else if s.dir, err = filepath.Abs(s.dir); err == nil { // some servers change theirs
		err = errors.Join(os.MkdirAll(s.dir, 0o755), os.Chmod(s.dir, 0o700))
	}
	if err != nil || s.account == "" {
		return err
	}
	return changeOwner(s.account, s.dir)
}

// startOnPort starts the server on a fixed port or, with 0, on any free one.
func (s *Server) startOnPort(ctx context.Context, fixedPort int) (err error) {
	if err := s.prepareDisk(ctx); err != nil {
		return err
	}
	for range portTries {
		if s.port = fixedPort; s.port == 0 {
			if s.port, err = freePort(s.host); err != nil {
				return err
			}
		}
		if err = s.prepare(ctx); err == nil {
			err = s.start(ctx)
		}
		// Another process may have taken the port meanwhile. Only the server's log says so.
		if err == nil || fixedPort != 0 || !addressInUse(err) {
			return err
		}
	}
	return err
}

func (s *Server) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s.engine.prepare(ctx, s)
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cfg := s.engine.process(s)
	cfg.Path, cfg.User, cfg.Env, cfg.CPUs = s.binary, s.account, s.diskEnv(), s.cpus
	cfg.container = s.inContainer()
	process, err := StartProcess(ctx, cfg)
	if err == nil {
		s.process = process
	}
	return err
}

// Addr returns the host and port that the server listens on. They never change.
func (s *Server) Addr() string { return hostPort(s.host, s.port) }

// URL returns the address with scheme and password, as clients take it. It never
// changes.
func (s *Server) URL() string { return s.engine.url(s) }

// Password returns the password in URL.
func (s *Server) Password() string { return s.password }

// DSN returns the address of a database as database/sql's drivers take it: for
// github.com/go-sql-driver/mysql without options, for PostgreSQL a URL with options.
// An empty name is no database on MySQL and postgres on PostgreSQL. For Redis, DSN
// returns URL.
func (s *Server) DSN(database string) string { return s.engine.dsn(s, database) }

// Dir returns the directory of the server's files.
func (s *Server) Dir() string { return s.dir }

// PID returns the id of the server's last process.
func (s *Server) PID() int { return s.current().PID() }

// CPULimit says in words how the server's CPU is limited; empty: it is not.
func (s *Server) CPULimit() string { return s.current().cpuLimit() }

// Log returns the last 16 KiB of what the server has written since its last start.
func (s *Server) Log() string { return s.current().Log() }

// Signal sends sig to the server's process, such as SIGSTOP and SIGCONT. PostgreSQL's
// process accepts connections: it does not pass the signal on to sessions.
func (s *Server) Signal(sig os.Signal) error { return s.current().Signal(sig) }

// IsRunning reports whether the server's process exists, which may be paused.
func (s *Server) IsRunning() bool { return s.Signal(syscall.Signal(0)) == nil }

func (s *Server) current() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Stop ends the server for good, with SIGKILL if it does not end by itself, and removes
// a temporary directory. The error says if the server had to be killed, or had failed
// before other than by Kill. Stop may be called again.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return errors.Join(s.process.Stop(stopTimeout), s.removeDir())
}

// Kill ends the server like a crash (SIGKILL). The directory stays, and Restart starts
// the server again.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	s.process.Kill()
	return nil
}

// Destroy ends the server like Kill, for good, and removes its files, as if its machine were
// lost.
func (s *Server) Destroy() error {
	return errors.Join(s.Kill(), s.Stop(), os.RemoveAll(s.dir))
}

// Restart stops the server if it still runs, and starts it with the same port, password
// and directory.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	_ = s.process.Stop(stopTimeout) // it has ended, one way or the other
	return s.start(ctx)
}

func (s *Server) removeDir() error {
	if !s.temporary || s.dir == "" {
		return nil
	}
	return removeTempDir(filepath.Dir(s.dir))
}

func addressInUse(err error) bool {
	failed, ok := errors.AsType[*startError](err)
	return ok && strings.Contains(strings.ToLower(failed.log), "address already in use")
}
