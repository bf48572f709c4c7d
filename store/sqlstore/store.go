package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// Store implements store.Store.
type Store struct {
	cfg        Config
	address    string // for messages: without the password
	dialect    dialect
	db         *sql.DB
	roundTrips atomic.Int64
	noWaitTill atomic.Int64 // ns since 1970; see write
	class      atomic.Int32 // store.Durability, as last read
	unwaited   atomic.Int64 // commits that did not wait for the standby until its answer

	calls  sync.RWMutex // locked for reading by every call, for writing by Close
	closed bool

	stopSweeping context.CancelFunc
	sweeping     sync.WaitGroup

	flusher flusher
}

var (
	_ store.Store          = (*Store)(nil)
	_ store.Verifier       = (*Store)(nil)
	_ store.CounterSource  = (*Store)(nil)
	_ store.Dropper        = (*Store)(nil)
	_ store.ConnectionPool = (*Store)(nil)
)

// Open connects, creates the schema or migrates it, and starts to drop sagas whose
// retention has ended. Any number of processes may open one schema, also at the same
// time. Open returns store.ErrInvalid if the configuration is invalid, and
// store.ErrUnsafe if the schema contains tables of another program or of a newer
// version. Its error does not contain the password.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	server, err := sqlconn.ParseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("sql: %w: url: %w", store.ErrInvalid, err)
	}
	cfg.Schema = cmp.Or(server.Database, cfg.Schema)
	s := &Store{cfg: cfg, address: server.Address}
	s.dialect = newDialect(server, &s.unwaited)
	opening, cancel := context.WithTimeout(ctx, openTimeout+cfg.Timeout)
	defer cancel()
	if s.db, err = s.dialect.connect(opening, cfg, sqlconn.NewDialer(cfg.silence(), &s.roundTrips)); err == nil {
		if err = s.prepare(opening); err != nil {
			_ = s.db.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.address, sqlconn.OneLine{Err: err})
	}
	s.startSweeping()
	return s, nil
}

// prepare migrates the schema, and reads the server's settings for the dialect.
func (s *Store) prepare(ctx context.Context) error {
	if s.cfg.MustExist {
		if err := s.mustExist(ctx); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if _, err := s.settings(ctx); err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	return nil
}

func (s *Store) settings(ctx context.Context) (store.Settings, error) {
	settings, err := s.dialect.settings(ctx, s.db)
	if err == nil {
		s.class.Store(int32(settings.Durability))
	}
	return settings, err
}

// openTimeout is how long preparing the schema may take, and how long Open waits
// while another process does so.
const openTimeout = time.Minute

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
	s.flusher.running.Wait() // its callers may have given up
	return s.db.Close()
}

// Counters implements store.CounterSource. What the server does is not
// counted here.
func (s *Store) Counters() store.Counters {
	return store.Counters{RoundTrips: s.roundTrips.Load(), Fsyncs: -1, Written: -1, Debt: -1}
}

// Connections implements store.ConnectionPool.
func (s *Store) Connections() (limit int, waited time.Duration) {
	stats := s.db.Stats()
	return stats.MaxOpenConnections, stats.WaitDuration
}

// unlimited is the time limit of a call that only its context ends.
const unlimited time.Duration = 0

// call runs f as one call of the store, within a time limit. An error of f comes back
// with the server's address and what the call was doing.
func (s *Store) call(ctx context.Context, limit time.Duration, doing string, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.RLock()
	defer s.calls.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	unwaited := s.unwaited.Load()
	err := f(limited)
	if err == nil && s.unwaited.Load() != unwaited { // of this call, or of another at the same time
		err = errUnwaited
	}
	if err != nil {
		return s.failure(ctx, doing, err)
	}
	return nil
}

var errUnwaited = errors.New("a session was told not to wait for its standby any more: outcome unknown")

// failure adds the server's address and what was being done to an error. It also adds
// the error of ctx, the caller's, whose end may come back as a broken connection.
func (s *Store) failure(ctx context.Context, doing string, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%s: %s: %w: %w", s.address, doing, ended, sqlconn.OneLine{Err: err})
	}
	if s.class.Load() == int32(store.D4) && errors.Is(err, context.DeadlineExceeded) {
		doing += ", which waits for the server's replica"
	}
	return fmt.Errorf("%s: %s: %w", s.address, doing, sqlconn.OneLine{Err: err})
}
