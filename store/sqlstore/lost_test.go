package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// The connection is cut at places all along an answer and a request. What was said
// to be done is there. What was not said is there or not; it is never refused,
// which would be the answer to a second attempt of the store's own. The next call
// works.
func TestApply_CutAnywhere_IsDoneOrNot(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		for name, batch := range map[string]func(first int) (prepare, batch []store.Change){
			"creates": func(n int) (_, batch []store.Change) {
				return nil, []store.Change{create(n), create(n + 1)}
			},
			"all": func(n int) (prepare, batch []store.Change) {
				for i := range 4 {
					prepare = append(prepare, create(n+i))
				}
				return prepare, []store.Change{mark(n), mark(n + 1), finish(n + 2), finish(n + 3), create(n + 4), create(n + 5)}
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newProxy(t, k.server.Addr())
				cfg := k.config()
				s, direct := open(t, p.of(cfg)), open(t, cfg)
				s.stopSweeping() // its bytes would count
				s.sweeping.Wait()
				c := &cutting{t: t, p: p, s: s, direct: direct, batch: batch, sagas: 10_000}
				request, answer := c.measure()
				for i := range 31 {
					c.cut(false, i*answer/30)
				}
				for i := range 11 {
					c.cut(true, i*request/10)
				}
				require.NotZero(t, c.done, "it was never done without an answer")
				require.NotZero(t, c.undone)
				require.NotZero(t, c.told)
				requireVerified(t, s)
			})
		}
	})
}

// cutting cuts one batch after the other.
type cutting struct {
	t      *testing.T
	p      *proxy
	s      *Store // through p
	direct *Store
	batch  func(first int) (prepare, batch []store.Change)
	sagas  int // the next one; their numbers are all of the same length

	told, done, undone int // outcomes: said, and found where nothing was said
}

// next prepares a batch, and has the store send another of its kind before, so
// that it is connected and what it prepares is prepared.
func (c *cutting) next() (first int, batch []store.Change) {
	for range 2 {
		if batch != nil {
			requireApplied(c.t, c.s, batch...)
		}
		first = c.sagas
		c.sagas += 10
		var prepare []store.Change
		prepare, batch = c.batch(first)
		requireApplied(c.t, c.direct, prepare...)
	}
	return first, batch
}

// measure counts the bytes of a batch.
func (c *cutting) measure() (request, answer int) {
	_, batch := c.next()
	c.p.Set(func(toServer bool, data []byte) (int, bool) {
		if toServer {
			request += len(data)
		} else {
			answer += len(data)
		}
		return len(data), false
	})
	requireApplied(c.t, c.s, batch...)
	c.p.Set(nil)
	return request, answer
}

func (c *cutting) cut(toServer bool, at int) {
	first, batch := c.next()
	before := make([]int, len(batch))
	for i := range batch {
		before[i] = stageOf(c.t, c.direct, first+i)
	}
	after := func(i int) int {
		switch change := batch[i].(type) {
		case *store.Transition:
			if change.To.Final() {
				return 3
			}
			return 2
		default:
			return 1
		}
	}
	c.p.CutAfter(toServer, at)
	errs := c.s.Apply(c.t.Context(), batch)
	c.p.Set(nil)
	for i, err := range errs {
		stage := stageOf(c.t, c.direct, first+i)
		if err == nil {
			require.Equal(c.t, after(i), stage, "change %d, cut behind byte %d (to the server: %v)", i, at, toServer)
			continue
		}
		require.False(c.t, isRefusal(err), "change %d, cut behind byte %d (to the server: %v): %v", i, at, toServer, err)
		require.Contains(c.t, []int{before[i], after(i)}, stage, "change %d, cut behind byte %d (to the server: %v)", i, at, toServer)
	}
	for i, err := range c.s.Apply(c.t.Context(), batch) {
		create := before[i] == 0
		repeatable := after(i) == 2
		switch {
		case errs[i] == nil:
			c.told++
		case create && errors.Is(err, store.ErrDuplicate), !create && !repeatable && errors.Is(err, store.ErrConflict):
			c.done++
		default:
			require.NoError(c.t, err, "the next call, cut behind byte %d (to the server: %v)", at, toServer)
			if !repeatable {
				c.undone++
			}
		}
		require.Equal(c.t, after(i), stageOf(c.t, c.direct, first+i))
	}
}

// The two places that matter most on MySQL: the COMMIT never arrives, or it does
// and nobody hears of it.
func TestApply_CutAtTheCommit(t *testing.T) {
	forEachMySQL(t, func(t *testing.T, k *kind) {
		p := newProxy(t, k.server.Addr())
		cfg := k.config()
		s, direct := open(t, hasty(p.of(cfg))), open(t, cfg)
		for i, arrives := range []bool{false, true, false, true} {
			first := 10 * i
			requireApplied(t, s, create(first))
			sent := false
			p.Set(func(toServer bool, data []byte) (int, bool) {
				switch {
				case toServer && bytes.Contains(data, []byte("COMMIT")):
					sent = true
					if !arrives {
						return 0, true
					}
				case sent && !toServer: // the server must not find the link cut
					return 0, false
				}
				return len(data), false
			})
			errs := s.Apply(t.Context(), []store.Change{mark(first), create(first + 1)})
			p.Set(nil)
			require.Error(t, errs[0])
			require.Error(t, errs[1])
			if arrives {
				require.Eventually(t, func() bool { return stageOf(t, direct, first+1) == 1 }, patience, time.Millisecond)
				require.Equal(t, 2, stageOf(t, direct, first))
			} else {
				// As long as it is locked it is not decided.
				require.Eventually(t, func() bool { return !direct.isLocked(t, gid(first)) }, patience, time.Millisecond)
				require.Equal(t, 1, stageOf(t, direct, first))
				require.Equal(t, 0, stageOf(t, direct, first+1))
			}
		}
	})
}

// endsAfter is a context that ends when the store has made so many round trips,
// which only those hear of who ask.
type endsAfter struct {
	context.Context
	s     *Store
	trips int64
}

func (c endsAfter) Err() error {
	if c.s.roundTrips.Load() >= c.trips {
		return context.Canceled
	}
	return nil
}

// A call ends between its statements, one of which was refused, and their ROLLBACK,
// which is then never sent. Its transaction must not stay open on a connection that
// others use: what they write would be part of it, and gone with it.
func TestApply_EndsBeforeItsRollback_LeavesNoOpenTransaction(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s, other := open(t, cfg), open(t, cfg)
		requireApplied(t, s, create(1), create(2))
		requireApplied(t, s, finish(2))
		c := chunks([]store.Change{mark(1), mark(2), create(3)}, make([]error, 3), nil)[0]
		ctx := endsAfter{t.Context(), s, s.roundTrips.Load() + 1}
		_, err := s.dialect.apply(ctx, s.db, c, s.retention(), false)
		require.Equal(t, k.name == "mysql", errors.Is(err, context.Canceled), "%v", err)
		requireApplied(t, s, create(4))
		require.Equal(t, 1, stageOf(t, other, 4), "what is acknowledged is there for everybody")
		require.Eventually(t, func() bool { return !other.isLocked(t, gid(1)) }, patience, time.Millisecond)
	})
}

// Connections are cut at random places while many write. In between all are cut
// at once.
func TestApply_UnderCuts_LosesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const cuts = 60
		p := newProxy(t, k.server.Addr())
		s := open(t, p.of(k.config()))
		l := newLoad(t, s)
		l.runBeside(func(stop <-chan struct{}) {
			for range cuts {
				select {
				case <-p.CutAfter(rand.N(2) == 0, rand.N(5000)):
				case <-stop:
					return
				}
				if rand.N(4) == 0 {
					p.CutAll()
				}
			}
		})
		p.requireMended(t, s)
		l.requireSound()
		require.NotEmpty(t, l.doubts)
	})
}

// requireMended checks that nothing fails any more once all connections have been
// cut, but for those which nobody sees are lost. The client of MySQL looks before
// it sends.
func (p *proxy) requireMended(t *testing.T, s *Store) {
	t.Helper()
	p.Set(nil)
	p.CutAll()
	unnoticed := s.cfg.Conns
	if _, ok := s.dialect.(*mysqlDialect); ok {
		unnoticed = 0
	}
	requireMended(t, s, unnoticed)
}

// requireMended uses all connections of a store at once, of which so many may turn
// out to be lost. When they all work, so does every call.
func requireMended(t *testing.T, s *Store, unnoticed int) {
	t.Helper()
	for lost := -1; lost != 0; {
		lost = s.lostConns(t)
		unnoticed -= lost
		require.GreaterOrEqual(t, unnoticed, 0)
	}
	var running sync.WaitGroup
	for range s.cfg.Conns {
		running.Go(func() {
			for range 10 {
				if _, err := s.Stats(t.Context()); err != nil {
					t.Errorf("a call that should work again: %v", err)
				}
			}
		})
	}
	running.Wait()
}

func (s *Store) lostConns(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var lost atomic.Int64
	var taken, asked sync.WaitGroup
	taken.Add(s.cfg.Conns)
	for range s.cfg.Conns {
		asked.Go(func() {
			conn, err := s.db.Conn(ctx)
			taken.Done()
			taken.Wait() // so nobody gets the one of another
			if err == nil {
				err = conn.PingContext(ctx)
				conn.Close()
			}
			if err != nil {
				lost.Add(1)
			}
		})
	}
	asked.Wait()
	return int(lost.Load())
}

// isLocked asks in a transaction of its own.
func (s *Store) isLocked(t *testing.T, gid string) bool {
	t.Helper()
	tx := s.begin(t)
	defer tx.Rollback()
	return s.exec(t.Context(), tx, "SELECT gid FROM saga WHERE gid = ? FOR UPDATE NOWAIT", gid) != nil
}
