package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/store"
)

// Two instances take the same sagas through their stages, in batches that
// overlap, so each stage of each saga is won by one of them.
func TestApply_OfTwoInstances_LosesNoUpdate(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		const sagas, workers = 240, 6
		var stores [workers]*Store
		for w := range stores {
			if w < 2 {
				stores[w] = open(t, cfg)
			} else {
				stores[w] = stores[w%2]
			}
		}
		var mu sync.Mutex
		won := map[string]int{}
		var unexpected []error
		var running sync.WaitGroup
		for w, s := range stores {
			running.Go(func() {
				for first := 0; first < sagas; first += 20 {
					for stage, change := range []func(int) store.Change{
						func(n int) store.Change { return create(n) },
						func(n int) store.Change { return mark(n) },
						func(n int) store.Change { return finish(n) },
					} {
						var batch []store.Change
						for n := range 40 {
							if w%2 == 0 {
								n = 39 - n
							}
							batch = append(batch, change((first+n)%sagas))
						}
						for len(batch) > 0 {
							errs := s.Apply(context.WithoutCancel(t.Context()), batch)
							var locked []store.Change // by the other, who is slow: not done
							mu.Lock()
							for i, err := range errs {
								switch {
								case err == nil:
									won[fmt.Sprint(stage, batch[i].Gid())]++
								case s.dialect.isLocked(err):
									locked = append(locked, batch[i])
								case !errors.Is(err, store.ErrDuplicate) && !errors.Is(err, store.ErrConflict):
									unexpected = append(unexpected, err)
								}
							}
							mu.Unlock()
							batch = locked
						}
					}
				}
			})
		}
		running.Wait()
		require.Empty(t, unexpected)
		for n := range sagas {
			require.Equal(t, 1, won[fmt.Sprint(0, gid(n))], "creates of %d", n)
			require.NotZero(t, won[fmt.Sprint(1, gid(n))], "marks of %d, which may be repeated", n)
			require.Equal(t, 1, won[fmt.Sprint(2, gid(n))], "ends of %d", n)
			r, err := stores[0].Get(t.Context(), gid(n))
			require.NoError(t, err)
			require.Equal(t, store.StatusSucceeded, r.Status)
			require.Equal(t, store.Marks("y---"), r.Marks)
		}
	})
}

// A server that is killed and started again, three times under load, has lost
// nothing that it acknowledged, and done nothing that nobody asked for.
func TestApply_AcrossKills_LosesNothingAcknowledged(t *testing.T) {
	race.Skip(t)
	forEach(t, func(t *testing.T, k *kind) {
		server := k.own(t, nil)
		s := open(t, configOf(server))
		settings, err := s.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.D3, settings.Durability)

		const workers, perBatch = 4, 10
		var mu sync.Mutex
		acked, tried := map[int]int{}, map[int]int{} // by saga: stages
		stop := make(chan struct{})
		var running sync.WaitGroup
		for w := range workers {
			running.Go(func() {
				for batch := 0; ; batch++ {
					select {
					case <-stop:
						return
					default:
					}
					first := w*1_000_000 + batch*perBatch
					for stage, change := range []func(int) store.Change{
						func(n int) store.Change { return create(n) },
						func(n int) store.Change { return mark(n) },
						func(n int) store.Change { return finish(n) },
					} {
						var changes []store.Change
						mu.Lock()
						for n := first; n < first+perBatch; n++ {
							changes = append(changes, change(n))
							tried[n] = stage + 1
						}
						mu.Unlock()
						errs := s.Apply(context.WithoutCancel(t.Context()), changes)
						mu.Lock()
						for i, err := range errs {
							if err == nil {
								acked[first+i] = stage + 1
							}
						}
						mu.Unlock()
						if errors.Join(errs...) != nil {
							// The outcome is unknown, so these are left as they are.
							select {
							case <-stop:
							case <-time.After(10 * time.Millisecond):
							}
							break
						}
					}
				}
			})
		}
		acknowledged := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(acked)
		}
		for range 3 {
			before := acknowledged()
			require.Eventually(t, func() bool { return acknowledged() > before+100 }, patience, time.Millisecond)
			require.NoError(t, server.Kill())
			require.NoError(t, server.Restart(t.Context()))
		}
		close(stop)
		running.Wait()

		require.Eventually(t, func() bool { // connections from before the kill
			_, err := s.Stats(t.Context())
			return err == nil
		}, patience, time.Millisecond)
		stages := map[string]int{}
		require.NoError(t, store.Walk(t.Context(), s, store.Query{Limit: 1000}, func(r store.Record) { stages[r.GID] = stageOfRecord(r) }))
		for n, most := range tried {
			found := stages[gid(n)]
			if found < acked[n] || found > most {
				t.Errorf("saga %d is at stage %d, was acknowledged at %d and tried at %d", n, found, acked[n], most)
			}
			if most-acked[n] > 1 {
				t.Errorf("saga %d went on after an error", n)
			}
		}
		requireVerified(t, s)
	})
}

// A batch is one statement for each thing it does, and one member that has lost
// costs the others nothing but time.
func TestApply_OfABatch_TakesFewRoundTrips(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		each := func(change func(int) store.Change, first int) (all []store.Change) {
			for n := first; n < first+50; n++ {
				all = append(all, change(n))
			}
			return all
		}
		creates := func(n int) store.Change { return create(n) }
		marks := func(n int) store.Change { return mark(n) }
		ends := func(n int) store.Change { return finish(n) }
		for _, first := range []int{1000, 0} { // PostgreSQL has to plan a statement once
			for i, batch := range [][]store.Change{
				each(creates, first),
				append(each(creates, first+50), each(marks, first)...),
				append(each(marks, first+50), each(ends, first)...),
			} {
				before := s.Counters().RoundTrips
				requireApplied(t, s, batch...)
				if first == 0 {
					require.EqualValues(t, 1, s.Counters().RoundTrips-before, "batch %d", i)
				}
			}
			require.Equal(t, 3, stageOf(t, s, first+49))
			require.Equal(t, 2, stageOf(t, s, first+50))
		}

		one := func(change store.Change) int64 {
			before := s.Counters().RoundTrips
			requireApplied(t, s, change)
			return s.Counters().RoundTrips - before
		}
		for _, change := range []store.Change{create(100), mark(100), finish(100)} {
			require.EqualValues(t, 1, one(change), "%T", change)
		}

		requireApplied(t, s, create(101), create(102))
		errs := s.Apply(t.Context(), []store.Change{create(103), create(100), mark(101), mark(49), mark(999), finish(102)})
		for i, want := range []error{nil, store.ErrDuplicate, nil, store.ErrConflict, store.ErrNotFound, nil} {
			if want == nil {
				require.NoError(t, errs[i], i)
			} else {
				require.ErrorIs(t, errs[i], want, i)
			}
		}
		require.Equal(t, []int{3, 2, 3, 1}, []int{stageOf(t, s, 100), stageOf(t, s, 101), stageOf(t, s, 102), stageOf(t, s, 103)})
	})
}

func stageOf(t *testing.T, s *Store, n int) int {
	t.Helper()
	r, err := s.Get(t.Context(), gid(n))
	if errors.Is(err, store.ErrNotFound) {
		return 0
	}
	require.NoError(t, err)
	return stageOfRecord(r)
}

func stageOfRecord(r store.Record) int {
	switch {
	case r.Status == store.StatusSucceeded:
		return 3
	case r.Marks.At(0) == store.MarkSucceeded:
		return 2
	default:
		return 1
	}
}

func TestClaimDue_LeavesOutWhatIsLocked(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		requireApplied(t, s, create(1), create(2), create(3))
		tx := s.begin(t)
		s.lockRow(t, tx, 2)
		claimed, err := s.ClaimDue(t.Context(), "me", time.Minute, 10)
		require.NoError(t, tx.Rollback())
		require.NoError(t, err)
		require.Len(t, claimed, 2)
		claimed, err = s.ClaimDue(t.Context(), "me", time.Minute, 10)
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		require.Equal(t, gid(2), claimed[0].GID)
	})
}

// Servers without SKIP LOCKED wait, and no two claims get the same saga.
func TestClaimDue_WithoutSkipLocked_IsDisjoint(t *testing.T) {
	forEachMySQL(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		s.dialect.(*mysqlDialect).skipLocked = false
		var creates []store.Change
		for n := range 200 {
			creates = append(creates, create(n))
		}
		requireApplied(t, s, creates...)
		var mu sync.Mutex
		claims := map[string]int{}
		var running sync.WaitGroup
		errs := make([]error, 4)
		for w := range errs {
			running.Go(func() {
				for range 10 {
					records, err := s.ClaimDue(t.Context(), "me", time.Minute, 10)
					errs[w] = errors.Join(errs[w], err)
					mu.Lock()
					for _, r := range records {
						claims[r.GID]++
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Len(t, claims, 200)
		for gid, n := range claims {
			require.Equal(t, 1, n, gid)
		}
	})
}

func TestSweep_DropsWhatIsPastItsRetention(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		cfg.Retention = time.Millisecond
		s := open(t, cfg)
		var creates, ends []store.Change
		for n := range 2*sweepLimit + 10 {
			creates, ends = append(creates, create(n)), append(ends, finish(n))
		}
		requireApplied(t, s, creates...)
		requireApplied(t, s, ends[10:]...)
		require.Eventually(t, func() bool {
			return s.number(t, "SELECT COUNT(*) FROM saga") == 10
		}, patience, 10*time.Millisecond)
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 10, stats.Unfinished)
	})
}

func TestVerify_FindsWhatIsWrong(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		for says, harm := range map[string]string{
			"unfinished, and expires":           "UPDATE saga SET done = true WHERE gid = 'saga-1'",
			"ended, and still in the due index": "UPDATE saga SET done = false WHERE gid = 'saga-2'",
			"is no status":                      "UPDATE saga SET status = 'x' WHERE gid = 'saga-1'",
			"cannot be":                         "UPDATE saga SET epoch = 0 WHERE gid = 'saga-1'",
		} {
			s := open(t, k.config())
			requireApplied(t, s, create(1), create(2))
			requireApplied(t, s, finish(2))
			requireVerified(t, s)
			s.mustExec(t, harm)
			findings, err := s.Verify(t.Context())
			require.NoError(t, err)
			require.Len(t, findings, 1)
			require.Contains(t, findings[0], says)
		}
	})
}

func requireVerified(t *testing.T, s store.Verifier) {
	t.Helper()
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}
