package saga_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// crowd runs sagas from many clients at once. Those of an even number succeed,
// in the others the last action is refused.
type crowd struct {
	t   *testing.T
	all *branches

	mu       sync.Mutex
	accepted map[string]store.Status // by gid, the end it must come to
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t, accepted: map[string]store.Status{}}
	c.all = &branches{answer: func(_ context.Context, call saga.Call) (machine.Outcome, string) {
		if call.Branch == store.Action(2) && call.Payload == "refuse" {
			return machine.Failed, "no money left"
		}
		return machine.Succeeded, ""
	}}
	return c
}

// run has clients run sagas, each until more says no. A client that is told
// that nothing is known asks again, as it should.
func (c *crowd) run(to *saga.Coordinator, clients int, more func(done int) bool) (done int64) {
	var total atomic.Int64
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for n := 0; more(n); n++ {
				s := newSaga(3)
				want := store.StatusSucceeded
				if (client+n)%2 == 1 {
					want, s.Steps[2].Payload = store.StatusFailed, "refuse"
				}
				for deadline := time.Now().Add(patience); ; {
					result, err := to.Run(c.t.Context(), s)
					if err == nil {
						assert.Equal(c.t, want, result.Status)
						total.Add(1)
						break
					}
					if !assert.ErrorIs(c.t, err, saga.ErrUnknown) || !assert.True(c.t, time.Now().Before(deadline)) {
						return
					}
					time.Sleep(time.Millisecond) // as a client would
				}
				c.mu.Lock()
				c.accepted[s.GID] = want
				c.mu.Unlock()
			}
		})
	}
	running.Wait()
	return total.Load()
}

// check compares what the clients were told with what is in the store and with
// what the branches were asked to do.
func (c *crowd) check(s store.Store) (repeated int) {
	for gid, want := range c.accepted {
		record := mustGet(c.t, s, gid)
		require.Equal(c.t, want, record.Status)
		once := []string{"a0", "a1", "a2"}
		if want == store.StatusFailed {
			once = append(once, "c2", "c1", "c0")
		}
		calls := c.all.of(gid)
		requireOrder(c.t, calls, once)
		repeated += len(calls) - len(once)
	}
	return repeated
}

// Of a tenth of all calls of the store the answer is lost, and another tenth
// never arrives. Every saga ends as it should, and as a lost answer is looked
// up, no branch is called again but for a saga that had to be taken over.
func TestFaults_LostCallsAndAnswers(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		cfg := patient()
		cfg.Lease, cfg.RequestTimeout = 2*time.Second, 500*time.Millisecond
		var lost atomic.Int64
		tenth := func(context.Context) error {
			if rand.N(10) > 0 {
				return nil
			}
			lost.Add(1)
			return errCut
		}
		s := open()
		crowd := newCrowd(t)
		c := start(t, &link{Store: s, before: tenth, after: tenth}, crowd.all, cfg)
		require.EqualValues(t, 16*10, crowd.run(c, 16, func(done int) bool { return done < 10 }))
		counters := settled(t, c)
		require.Positive(t, lost.Load())
		require.Positive(t, counters.StoreErrors)
		repeated := crowd.check(s)
		require.LessOrEqual(t, int64(repeated), counters.Recovered)
		t.Logf("%d calls lost, %d branch calls repeated, %+v", lost.Load(), repeated, counters)
		verify(t, s)
	})
}

// The store refuses to write for a while, as a full disk does.
func TestFaults_StoreIsAwayForAWhile_SagasWait(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		var away atomic.Bool
		s := open()
		crowd := newCrowd(t)
		cfg := patient()
		cfg.Lease, cfg.RequestTimeout = 2*time.Second, 500*time.Millisecond
		c := start(t, &link{Store: s, before: func(context.Context) error {
			if away.Load() {
				return errCut
			}
			return nil
		}}, crowd.all, cfg)
		until := time.Now().Add(900 * time.Millisecond)
		time.AfterFunc(300*time.Millisecond, func() { away.Store(true) })
		time.AfterFunc(600*time.Millisecond, func() { away.Store(false) })
		require.Positive(t, crowd.run(c, 16, func(int) bool { return time.Now().Before(until) }))
		settled(t, c)
		crowd.check(s)
		verify(t, s)
	})
}

// Redis is killed and started again, twice, while sagas run. With an append-only
// file that is synced before every answer nothing that was acknowledged is lost.
func TestFaults_RedisKilled_LosesNothing(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	s := redisOpener(t, server, time.Hour)()
	cfg := patient()
	cfg.Lease, cfg.RequestTimeout = time.Second, 300*time.Millisecond
	crowd := newCrowd(t)
	c := start(t, s, crowd.all, cfg)
	var over atomic.Bool
	killed := make(chan error, 1)
	go func() {
		defer over.Store(true)
		var err error
		for range 2 {
			alive := time.NewTimer(300 * time.Millisecond)
			<-alive.C
			err = errors.Join(err, server.Kill())
			alive.Reset(100 * time.Millisecond)
			<-alive.C
			err = errors.Join(err, server.Restart(context.Background()))
		}
		killed <- err
	}()
	done := crowd.run(c, 32, func(int) bool { return !over.Load() })
	require.NoError(t, <-killed)
	require.Positive(t, done)
	counters := settled(t, c)
	require.Positive(t, counters.StoreErrors, "it was away")
	for gid := range crowd.accepted {
		mustWait(t, c, gid)
	}
	repeated := crowd.check(s)
	require.LessOrEqual(t, repeated, 2*32, "at most one a saga in flight and crash")
	t.Logf("%d sagas, %d branch calls repeated, %+v", done, repeated, counters)
	verify(t, s)
}
