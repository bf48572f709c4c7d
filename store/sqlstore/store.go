package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"sagabench/store"
)

// Store implements store.Store.
type Store struct {
	cfg        Config
	address    string // for messages: without the password
	dialect    dialect
	db         *gorm.DB
	roundTrips atomic.Int64
	waryUntil  atomic.Int64 // ns since 1970; see write

	calls  sync.RWMutex // held for reading by every call, for writing by Close
	closed bool

	stopSweeping context.CancelFunc
	sweeping     sync.WaitGroup

	flusher flusher
}

var (
	_ store.Store          = (*Store)(nil)
	_ store.Wiper          = (*Store)(nil)
	_ store.Verifier       = (*Store)(nil)
	_ store.CounterSource  = (*Store)(nil)
	_ store.Dropper        = (*Store)(nil)
	_ store.ConnectionPool = (*Store)(nil)
)

// Open connects, makes the schema or takes it to the present one, and begins to
// drop what is past its retention. Any number of processes may open one schema,
// also at the same time. The error wraps store.ErrInvalid when the configuration
// is wrong, and store.ErrUnsafe when the schema holds tables that are not this
// package's, or a newer version's. It never holds the password.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	d, address, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("sql: %w: url: %w", store.ErrInvalid, err)
	}
	s := &Store{cfg: cfg, address: address, dialect: d}
	opening, cancel := context.WithTimeout(ctx, openTimeout+cfg.Timeout)
	defer cancel()
	if s.db, err = d.connect(opening, cfg, s.dial); err == nil {
		if err = s.prepare(opening); err != nil {
			_ = s.closePool()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, oneLine{err})
	}
	s.startSweeping()
	return s, nil
}

// prepare takes the schema to the present version, and learns what the server
// promises.
func (s *Store) prepare(ctx context.Context) error {
	if s.cfg.MustExist {
		if err := s.mustExist(ctx); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if _, err := s.dialect.settings(s.db.WithContext(ctx)); err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	return nil
}

// dialer makes connections.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// dial makes connections whose round trips are counted. A server that has vanished
// is noticed on those that are idle too, about when it would notice a client.
func (s *Store) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	silence := s.cfg.sessionBound()
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence / 2, Count: 2}}
	c, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: c, roundTrips: &s.roundTrips}, nil
}

// openTimeout is how long preparing the schema may take, and how long Open waits
// while another process does so.
const openTimeout = time.Minute

// openGorm puts gorm over a pool. The batches decide themselves what is one
// transaction, and errors are told to the caller, not to a log.
func openGorm(dialector gorm.Dialector, pool *sql.DB, cfg Config) (*gorm.DB, error) {
	pool.SetMaxOpenConns(cfg.Conns)
	pool.SetMaxIdleConns(cfg.Conns)
	db, err := gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.stopSweeping()
	s.sweeping.Wait()
	s.calls.Lock()
	defer s.calls.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.flusher.running.Wait() // whoever it was for may have given up
	return s.closePool()
}

func (s *Store) closePool() error {
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

// Counters implements store.CounterSource. How often the server synced for us it does
// not say.
func (s *Store) Counters() store.Counters {
	return store.Counters{RoundTrips: s.roundTrips.Load(), Fsyncs: -1}
}

// Connections is how many connections to the server the store may have at once, and for
// how long calls have waited for one of them to come free since it was opened, all
// added up.
func (s *Store) Connections() (most int, waited time.Duration) {
	pool, err := s.db.DB()
	if err != nil { // not over a *sql.DB, which openGorm gives it
		return s.cfg.Conns, 0
	}
	stats := pool.Stats()
	return stats.MaxOpenConnections, stats.WaitDuration
}

// enter begins a call, which ends with calls.RUnlock.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.RLock()
	if s.closed {
		s.calls.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// oneLine is an error of a client that may tell each of its attempts on a line.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e oneLine) Unwrap() error { return e.error }

// failure says of an error from the server or its client what a caller can act
// on. ctx is the caller's, whose end may come back as a broken connection.
func (s *Store) failure(ctx context.Context, doing string, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%s: %s: %w: %w", s.address, doing, ended, oneLine{err})
	}
	return fmt.Errorf("%s: %s: %w", s.address, doing, oneLine{err})
}
