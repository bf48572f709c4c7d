package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store"
)

// participants are branches in this process, which keep a journal. They refuse a
// step whose payload says so.
type participants struct {
	mu      sync.Mutex
	journal map[string][]store.Branch // calls, by saga
}

const refused = "1"

func (p *participants) call(_ context.Context, c saga.Call) error {
	p.mu.Lock()
	p.journal[c.GID] = append(p.journal[c.GID], c.Branch)
	p.mu.Unlock()
	if c.Payload == refused && !c.Branch.IsCompensation() {
		return branch.ErrRefused
	}
	return nil
}

// A coordinator runs sagas over connections that are cut. Whoever has the
// acknowledgement finds the saga ended, and nobody's is left half done or half
// undone.
func TestCoordinator_UnderCuts_EndsEverySaga(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const cuts, submitters = 40, 16
		p := newProxy(t, k.server.Addr())
		s := open(t, p.of(k.config()))
		all := &participants{journal: map[string][]store.Branch{}}
		funcs := branch.NewFuncs(nil)
		url := funcs.Handle("branch", all.call)
		cfg := saga.DefaultConfig()
		// What nobody runs, since its submitter was left in doubt, is soon taken up.
		cfg.Lease, cfg.RequestTimeout, cfg.PollInterval = 2*time.Second, time.Second, 100*time.Millisecond
		cfg.Commit.Flushers = 2
		cfg.Logger = slog.New(slog.DiscardHandler)
		c, err := saga.New(s, funcs, cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer c.Close(ctx)
		defer cancel()

		done := make(chan struct{})
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() {
			defer close(done)
			for range cuts {
				select {
				case <-p.CutAfter(rand.N(2) == 0, rand.N(8000)):
				case <-ctx.Done():
					return
				}
			}
		})
		var mu sync.Mutex
		acknowledged := map[string]bool{}
		for range submitters {
			running.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					select {
					case <-done:
						return
					default:
					}
					s := someSaga(url)
					err := c.Submit(ctx, s)
					for errors.Is(err, saga.ErrUnknown) && n%4 > 0 { // some do not ask again
						err = c.Submit(ctx, s)
					}
					switch {
					case err == nil:
						mu.Lock()
						acknowledged[s.GID] = true
						mu.Unlock()
					case !errors.Is(err, saga.ErrUnknown):
						t.Errorf("submit: %v", err)
					}
					if _, err := c.Wait(ctx, s.GID); err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Errorf("wait: %v", err)
					}
				}
			})
		}
		running.Wait()
		require.NoError(t, ctx.Err())
		p.Set(nil)
		require.Eventually(t, func() bool { // those that nobody waits for
			stats, err := s.Stats(ctx)
			return err == nil && stats.Unfinished == 0
		}, patience, 10*time.Millisecond)
		ended := 0
		require.NoError(t, store.Walk(ctx, s, store.Query{Limit: 1000}, func(r store.Record) {
			ended++
			all.requireOneOutcome(t, r)
			delete(acknowledged, r.GID)
		}))
		require.Empty(t, acknowledged, "acknowledged, and not there")
		require.Equal(t, ended, len(all.journal), "sagas that ended, and those of which a branch was called")
		require.NotZero(t, c.Counters().StoreErrors)
	})
}

// someSaga has one to four steps, one of which may be refused.
func someSaga(url string) *saga.Saga {
	s := &saga.Saga{GID: saga.NewGID(), Concurrent: rand.N(2) == 0}
	for i := range 1 + rand.N(4) {
		step := saga.Step{Action: url, Compensate: url, Payload: strconv.Itoa(min(rand.N(8), 2))}
		if s.Concurrent && i > 0 {
			step.After = []int{rand.N(i)}
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

func (p *participants) requireOneOutcome(t *testing.T, r store.Record) {
	t.Helper()
	calls := p.journal[r.GID]
	what := fmt.Sprintf("%s is %v with marks %s at epoch %d, the calls were %v", r.GID, r.Status, r.Marks, r.Epoch, calls)
	for i := range r.Marks.Steps() {
		times := func(b store.Branch) (n int) {
			for _, call := range calls {
				if call == b {
					n++
				}
			}
			return n
		}
		acted, undone := times(store.Action(i)), times(store.Compensation(i))
		require.LessOrEqual(t, max(acted, undone), int(r.Epoch), what)
		if r.Status == store.StatusSucceeded {
			require.NotZero(t, acted, what)
			require.Zero(t, undone, what)
		} else {
			require.Equal(t, acted > 0, undone > 0, what)
			require.Equal(t, undone > 0, r.Marks.At(store.Compensation(i)) == store.MarkSucceeded, what)
		}
	}
	// Of a saga whose steps run at once another's compensation may come first.
	var undoing []store.Branch
	for i, call := range calls {
		if call.IsCompensation() {
			require.NotContains(t, calls[i:], store.Action(call.Step()), what)
			undoing = append(undoing, call)
		}
	}
	info, err := saga.Read(r)
	require.NoError(t, err)
	if !info.Saga.Concurrent {
		slices.Reverse(undoing)
		require.True(t, slices.IsSorted(undoing), what)
	}
}
