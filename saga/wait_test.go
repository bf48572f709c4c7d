package saga_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

func TestWait_AfterSubmit_LearnsTheEnd(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := blocking()
		here := start(t, open(), all, patient())
		elsewhere := start(t, open(), &branches{}, patient())
		s := newSaga(2)
		require.NoError(t, here.Submit(t.Context(), s))

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, c := range []*saga.Coordinator{here, elsewhere} {
			_, err := c.Wait(ctx, s.GID)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		var waiters sync.WaitGroup
		for i := range 20 {
			waiters.Go(func() {
				result, err := []*saga.Coordinator{here, elsewhere}[i%2].Wait(within(t, patience), s.GID)
				assert.NoError(t, err)
				assert.Equal(t, saga.Result{Status: store.StatusSucceeded}, result)
			})
		}
		close(all.goOn)
		waiters.Wait()
		require.Equal(t, []string{"a0", "a1"}, all.of(s.GID))
	})
}

func TestWait_NoSuchSaga(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		c := start(t, open(), &branches{}, patient())
		_, err := c.Wait(t.Context(), saga.NewGID())
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = c.Wait(t.Context(), "not {a} gid")
		require.ErrorIs(t, err, store.ErrInvalid)
	})
}

func TestRun_MaxWaitPasses_SagaGoesOn(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := blocking()
		cfg := patient()
		cfg.PollInterval, cfg.MaxWait = 10*time.Millisecond, 30*time.Millisecond
		c := start(t, open(), all, cfg)
		s := newSaga(1)
		_, err := c.Run(t.Context(), s)
		require.ErrorContains(t, err, "no end within 30ms")
		close(all.goOn)
		require.Eventually(t, func() bool {
			result, err := c.Wait(t.Context(), s.GID)
			return err == nil && result.Status == store.StatusSucceeded
		}, patience, 10*time.Millisecond)
	})
}

// Whoever waits has a timeout above MaxWait, however seldom the store is looked at.
func TestRun_MaxWaitPassesBetweenLooks_IsObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, maxWait := range []time.Duration{time.Second, 6 * time.Second} {
			cfg := unhurried()
			cfg.PollInterval, cfg.MaxWait = 5*time.Second, maxWait
			c := start(t, memstore.New(time.Hour), blocking(), cfg)
			began := time.Now()
			_, err := c.Run(t.Context(), newSaga(1))
			require.ErrorIs(t, err, saga.ErrNotEnded)
			require.Equal(t, maxWait, time.Since(began))
		}
	})
}

func TestRun_ClientGivesUp_SagaGoesOn(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := blocking()
		c := start(t, open(), all, patient())
		s := newSaga(1)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the client hung up")
		go func() {
			<-all.called
			cancel(why)
		}()
		_, err := c.Run(ctx, s)
		require.ErrorIs(t, err, why)
		close(all.goOn)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, s.GID).Status)
	})
}

// A store that keeps no finished saga has forgotten it before the client could
// look: its end must reach whoever ran it all the same.
func TestRun_NoRetention_StillLearnsTheEnd(t *testing.T) {
	onStores(t, 0, func(t *testing.T, open opener) {
		cfg := patient()
		cfg.PollInterval = time.Millisecond
		s := open()
		c := start(t, s, refusing(1), cfg)
		var clients sync.WaitGroup
		for i := range 64 {
			clients.Go(func() {
				for range 10 {
					want := store.StatusSucceeded
					if i%2 == 0 {
						want = store.StatusFailed
					}
					next := newSaga(1 + (i+1)%2)
					result, err := c.Run(within(t, patience), next)
					assert.NoError(t, err)
					assert.Equal(t, want, result.Status)
					_, err = s.Get(t.Context(), next.GID)
					assert.ErrorIs(t, err, store.ErrNotFound)
				}
			})
		}
		clients.Wait()
	})
}

// Without retention a gid is free again once its saga has ended. Whoever runs
// the second saga must not be told how the first ended.
func TestRun_GidUsedAgain_GetsItsOwnEnd(t *testing.T) {
	onStores(t, 0, func(t *testing.T, open opener) {
		firstMayEnd, secondMayStart := make(chan struct{}), make(chan struct{})
		caller := &slowCheck{branches: refusing(0), checking: make(chan struct{}), goOn: secondMayStart}
		answer := caller.answer
		caller.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			<-firstMayEnd
			return answer(ctx, c)
		}
		c := start(t, open(), caller, patient())
		first := newSaga(1)
		second := &saga.Saga{GID: first.GID, Steps: []saga.Step{{Compensate: "slow:"}}} // which succeeds
		ended := make(chan saga.Result, 1)
		require.NoError(t, c.Submit(t.Context(), first))
		go func() {
			result, err := c.Run(within(t, patience), second)
			assert.NoError(t, err)
			ended <- result
		}()
		<-caller.checking // the second has come in
		close(firstMayEnd)
		until(t, "the first has ended", func() bool { return c.Counters().Failed == 1 })
		time.Sleep(2 * time.Millisecond) // ages are to the millisecond: see aborts.state
		close(secondMayStart)
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, <-ended)
	})
}

// slowCheck takes its time to check a URL.
type slowCheck struct {
	*branches
	checking, goOn chan struct{}
}

func (s *slowCheck) Check(url string) error {
	if url == "slow:" {
		close(s.checking)
		<-s.goOn
	}
	return nil
}
