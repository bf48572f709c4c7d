package saga_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// The tests of this file are about stores that lose what they have acknowledged:
// a Redis that does not sync each write and crashes, or a failover to a replica
// that is behind.

// Redis keeps nothing on disk, and is started anew while an action is under way.
// That the saga is gone then is not its success.
func TestRun_RedisLosesTheSaga_IsNotSuccess(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	all := blocking(store.Action(1))
	cfg := patient()
	c := start(t, redisOpener(t, server, time.Hour)(), all, cfg)
	told := runs(t, c, newSaga(2))
	<-all.called
	require.NoError(t, server.Kill())
	close(all.goOn)
	until(t, "the store is missed", func() bool { return c.Counters().StoreErrors > 0 })
	require.NoError(t, server.Restart(context.Background()))
	got := <-told
	require.ErrorIs(t, got.err, saga.ErrEndUnknown, "%+v", got.result)
	require.ErrorContains(t, got.err, "finished sagas are kept for 1h0m0s")
	counters := settled(t, c)
	require.Zero(t, counters.Succeeded)
	require.Zero(t, counters.Lost, "nobody has taken it over")
	require.EqualValues(t, 1, counters.LostWrites)
}

// The answer to the last write is lost, and then the saga is gone. What that
// means depends on how long the store keeps finished sagas, and on what else can
// have ended it.
func TestRun_GoneAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention time.Duration
		applied   bool // the write has arrived
		stopped   bool // another process stops the saga by force
		refused   bool // it was aborting
		want      saga.Result
		err       error
		lost      int64
	}{
		"kept, so it was lost":                 {time.Hour, false, false, false, saga.Result{}, saga.ErrEndUnknown, 1},
		"kept, aborting, so it was lost":       {time.Hour, false, false, true, saga.Result{}, saga.ErrEndUnknown, 1},
		"not kept, so it is our end":           {0, true, false, false, saga.Result{Status: store.StatusSucceeded}, nil, 0},
		"not kept, aborting, so it is our end": {0, true, false, true, saga.Result{Status: store.StatusFailed, Reason: "step 2, action: no money left"}, nil, 0},
		"not kept, and stopped by force":       {0, false, true, false, saga.Result{Status: store.StatusFailed, Reason: "stopped by force, without compensation: by hand"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(tt.retention)
				empty := model.Snapshot()
				s := newSaga(2)
				other := start(t, model, &branches{}, unhurried())
				way := &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
					change, ok := changes[0].(*store.Transition)
					if !ok || !change.To.Final() {
						return to.Apply(ctx, changes)
					}
					switch {
					case tt.applied:
						to.Apply(ctx, changes)
					case tt.stopped && change.To == store.StatusSucceeded:
						require.NoError(t, other.ForceStop(ctx, s.GID, "by hand"))
						require.NoError(t, other.ForceStop(ctx, s.GID, "and again"))
					case tt.stopped:
						return to.Apply(ctx, changes)
					default:
						empty()
					}
					return all(errCut, changes)
				}}
				branches := &branches{}
				if tt.refused {
					branches = refusing(1)
				}
				c := start(t, way, branches, unhurried())
				got := <-runs(t, c, s)
				require.ErrorIs(t, got.err, tt.err, "%+v", got.result)
				require.Equal(t, tt.want, got.result)
				require.Equal(t, tt.lost, settled(t, c).LostWrites)
			})
		})
	}
}

// A store goes back to how it was before an abort that it had acknowledged, while
// a compensation is under way. No action is called again: the abort is written
// again, and the result says so.
func TestRun_StoreLosesTheAbort_GoesOnCompensating(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		atStep := make([]func(), 3)
		branches := refusing(2)
		refuses := branches.answer
		branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			switch {
			case !c.Branch.IsCompensation():
				atStep[c.Branch.Step()] = model.Snapshot()
			case c.Branch == store.Compensation(2):
				atStep[1]() // two marks and the abort are lost
			}
			return refuses(ctx, c)
		}
		c := start(t, model, branches, unhurried())
		s := newSaga(3)
		got := <-runs(t, c, s)
		require.NoError(t, got.err)
		require.Equal(t, []string{"a0", "a1", "a2", "c2", "c1", "c0"}, branches.of(s.GID))
		const reason = "the store lost this abort, so it was written again: step 3, action: no money left"
		require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: reason}, got.result)
		record := mustGet(t, model, s.GID)
		require.Equal(t, store.Marks("yyyyny"), record.Marks)
		require.Contains(t, record.Note, reason)
		require.EqualValues(t, 1, settled(t, c).LostWrites)
	})
}

// The abort is lost when nobody runs the saga: the coordinator that takes it up
// again has written it, or has demanded it, and knows.
func TestTakeover_StoreHasLostTheAbort_IsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, demanded := range map[string]bool{"refused here": false, "demanded here": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(time.Hour)
				var back func()
				branches, undo := refusing(1), machine.Ongoing
				refuses := branches.answer
				branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
					switch {
					case c.Branch == store.Action(1):
						back = model.Snapshot()
						if demanded {
							return machine.Ongoing, "not yet"
						}
					case c.Branch.IsCompensation():
						return undo, "not yet"
					}
					return refuses(ctx, c)
				}
				cfg := unhurried()
				cfg.Lease, cfg.RetryInterval = time.Minute, 10*time.Minute
				c := start(t, model, branches, cfg)
				s := newSaga(2)
				require.NoError(t, c.Submit(t.Context(), s))
				synctest.Wait()
				if demanded {
					require.NoError(t, c.Abort(t.Context(), s.GID, "changed my mind"))
					synctest.Wait()
				}
				require.Equal(t, []string{"a0", "a1", "c1"}, branches.of(s.GID))
				back()
				undo = machine.Succeeded
				result, err := c.Wait(t.Context(), s.GID)
				require.NoError(t, err)
				require.Equal(t, store.StatusFailed, result.Status)
				require.Contains(t, result.Reason, "the store lost this abort")
				require.Equal(t, []string{"a0", "a1", "c1", "c1", "c0"}, branches.of(s.GID))
				require.EqualValues(t, 1, settled(t, c).LostWrites)
			})
		})
	}
}

// After the store has gone back another process takes the saga over, from before
// the abort. The one that knows of it says so with its next write.
func TestTakeover_FromBeforeTheAbort_IsAbortedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = time.Minute, 30*time.Second
		knows, back := blocking(store.Compensation(1)), func() {}
		answer := knows.answer
		knows.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch == store.Action(1) {
				back = model.Snapshot()
				return machine.Failed, "no money left"
			}
			return answer(ctx, c)
		}
		a := start(t, model, knows, cfg)
		s := newSaga(3)
		require.NoError(t, a.Submit(t.Context(), s))
		<-knows.called
		back()
		require.NoError(t, model.Apply(t.Context(), []store.Change{&store.Transition{
			GID: s.GID, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted, Due: -1,
		}})[0])
		dead := blocking()
		b := start(t, model, dead, cfg)
		<-dead.called // its a1
		close(knows.goOn)
		synctest.Wait()
		record := mustGet(t, model, s.GID)
		require.Equal(t, store.StatusAborting, record.Status)
		require.Equal(t, b.Owner(), record.Owner)
		require.EqualValues(t, 1, settled(t, a).LostWrites)
		close(dead.goOn)
		require.Equal(t, store.StatusFailed, mustWait(t, b, s.GID).Status)
		require.Equal(t, []string{"a1", "c1", "c0"}, dead.of(s.GID))
	})
}

// A failover takes the claim of a saga back with all that was done under it.
func TestRun_EpochGoesBack_IsAbortedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		create(t, model, "left", `{"steps":[{"action":"http://a","compensate":"http://b"},{"action":"http://c","compensate":"http://d"}]}`, 2)
		back := model.Snapshot()
		branches := refusing(1)
		refuses, times := branches.answer, 0
		branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch == store.Compensation(1) {
				if times++; times == 1 {
					back()
				}
			}
			return refuses(ctx, c)
		}
		c := start(t, model, branches, unhurried())
		result := mustWait(t, c, "left")
		require.Equal(t, store.StatusFailed, result.Status)
		require.Contains(t, result.Reason, "the store lost this abort")
		require.Equal(t, []string{"a0", "a1", "c1", "c1", "c0"}, branches.of("left"))
		require.EqualValues(t, 1, settled(t, c).LostWrites)
	})
}

// The store loses a claim, and gives the epoch to another coordinator. The first one writes
// no more, and calls nothing that the other does not know of.
func TestTakeover_StoreHasLostTheClaim_TheFirstStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		step := `{"action":"http://a","compensate":"http://b"}`
		create(t, model, "left", `{"steps":[`+step+`,`+step+`,`+step+`]}`, 3)
		back := model.Snapshot()
		first, second := blocking(), blocking()
		a := start(t, model, first, unhurried())
		<-first.called
		back()
		b := start(t, model, second, unhurried())
		<-second.called
		record := mustGet(t, model, "left")
		require.Equal(t, b.Owner(), record.Owner)
		require.EqualValues(t, 2, record.Epoch, "as that of the first")
		close(first.goOn)
		synctest.Wait()
		require.Equal(t, []string{"a0"}, first.of("left"))
		require.Equal(t, record, mustGet(t, model, "left"))
		counters := settled(t, a)
		require.EqualValues(t, 1, counters.LostWrites)
		require.EqualValues(t, 1, counters.Lost)
		require.NoError(t, b.Abort(t.Context(), "left", "changed my mind"))
		close(second.goOn)
		require.Equal(t, store.StatusFailed, mustWait(t, b, "left").Status)
		require.Equal(t, []string{"a0", "c0"}, second.of("left"))
	})
}

// Marks are lost, and then the answer to a write: what is found is mended.
func TestRun_StoreLosesMarks_WritesThemAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		var cut atomic.Bool
		back := func() {}
		branches := &branches{}
		branches.answer = func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			switch c.Branch {
			case store.Action(0):
				back = model.Snapshot()
			case store.Action(2):
				back()
				cut.Store(true)
			}
			return machine.Succeeded, ""
		}
		c := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			if cut.CompareAndSwap(true, false) {
				return all(errCut, changes)
			}
			return to.Apply(ctx, changes)
		}}, branches, unhurried())
		s := newSaga(4)
		got := <-runs(t, c, s)
		require.NoError(t, got.err)
		require.Equal(t, store.StatusSucceeded, got.result.Status)
		require.Equal(t, []string{"a0", "a1", "a2", "a3"}, branches.of(s.GID))
		require.Equal(t, store.Marks("y-y-y-y-"), mustGet(t, model, s.GID).Marks)
		require.EqualValues(t, 1, settled(t, c).LostWrites)
	})
}

// Marks are lost, and then the saga is ended by another process: nothing can be
// written again, and nobody tries.
func TestRun_StoreLosesMarksOfASagaThatHasEnded_IsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		other := start(t, model, &branches{}, unhurried())
		var looks atomic.Int64
		back := func() {}
		branches := &branches{}
		branches.answer = func(_ context.Context, c saga.Call) (machine.Outcome, string) {
			switch c.Branch {
			case store.Action(0):
				back = model.Snapshot()
			case store.Action(1):
				back()
				require.NoError(t, other.ForceStop(t.Context(), c.GID, "by hand"))
			}
			return machine.Succeeded, ""
		}
		c := start(t, &link{Store: model, before: func(context.Context) error {
			if looks.Add(1) > 1000 {
				time.Sleep(time.Second) // or it would go on for ever in no time
			}
			return nil
		}}, branches, unhurried())
		told := runs(t, c, newSaga(3))
		time.Sleep(time.Minute)
		require.Less(t, looks.Load(), int64(300), "with those for due sagas")
		got := <-told
		require.NoError(t, got.err)
		require.Equal(t, store.StatusFailed, got.result.Status)
		require.EqualValues(t, 1, settled(t, c).LostWrites)
	})
}

// Redis goes back to before the abort, while the compensation is under way.
func TestRun_RedisLosesTheAbort_GoesOnCompensating(t *testing.T) {
	t.Parallel()
	t.Run("it crashes, with an old snapshot on disk", func(t *testing.T) {
		t.Parallel()
		server := labtest.Start(t, lab.Redis, lab.Config{})
		losesTheAbort(t, server, func(client *redis.Client) { require.NoError(t, client.Save(t.Context()).Err()) }, func() {
			require.NoError(t, server.Kill())
			require.NoError(t, server.Restart(context.Background()))
		})
	})
	t.Run("a replica of a cluster takes over that is behind", func(t *testing.T) {
		t.Parallel()
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 1, Replicas: 1})
		replica := connect(t, cluster.Nodes()[1])
		losesTheAbort(t, cluster.Nodes()[0], func(*redis.Client) { // the link is cut
			require.NoError(t, replica.ConfigSet(t.Context(), "masterauth", "wrong").Err())
			require.NoError(t, replica.Do(t.Context(), "CLIENT", "KILL", "TYPE", "master").Err())
		}, func() {
			require.NoError(t, replica.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err())
			require.NoError(t, cluster.WaitReady(within(t, patience)))
		})
	})
	t.Run("a network splits, and both sides of a cluster have a master", func(t *testing.T) {
		t.Parallel()
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 1, Replicas: 1, CanCutOff: true, Node: lab.Config{
			Settings: map[string]string{"cluster-node-timeout": "60000"}, // neither side notices
		}})
		nodes := cluster.Nodes()
		losesTheAbort(t, nodes[0], func(*redis.Client) {
			require.NoError(t, cluster.CutOff(t.Context(), nodes[0]))
			require.NoError(t, connect(t, nodes[1]).Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err())
		}, func() {
			require.NoError(t, cluster.Reconnect(t.Context()))
			require.NoError(t, cluster.WaitReady(within(t, patience)))
		})
	})
}

func losesTheAbort(t *testing.T, server *lab.Server, remember func(*redis.Client), goBack func()) {
	all := blocking(store.Action(1), store.Compensation(1))
	waits := all.answer
	all.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
		if outcome, why := waits(ctx, c); c.Branch != store.Action(1) {
			return outcome, why
		}
		return machine.Failed, "no money left"
	}
	c := start(t, redisOpener(t, server, time.Hour)(), all, patient())
	s := newSaga(2)
	told := runs(t, c, s)
	<-all.called
	remember(connect(t, server))
	all.goOn <- struct{}{}
	<-all.called // the compensation
	goBack()
	close(all.goOn)
	got := <-told
	require.NoError(t, got.err)
	require.Equal(t, store.StatusFailed, got.result.Status)
	require.Contains(t, got.result.Reason, "the store lost this abort")
	require.Equal(t, []string{"a0", "a1", "c1", "c0"}, all.of(s.GID))
	require.EqualValues(t, 1, settled(t, c).LostWrites)
}

func connect(t *testing.T, server *lab.Server) *redis.Client {
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// The store has lost an aborted saga altogether, and its client, who was left in
// doubt, submits it again.
func TestSubmit_StoreHasLostAnAbortedSaga_DoesNotStartAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		empty := model.Snapshot()
		branches, undo := refusing(1), machine.Ongoing
		refuses := branches.answer
		branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if c.Branch.IsCompensation() {
				return undo, "not yet"
			}
			return refuses(ctx, c)
		}
		cfg := unhurried()
		cfg.RetryInterval = time.Minute
		c := start(t, model, branches, cfg)
		s := newSaga(3)
		require.NoError(t, c.Submit(t.Context(), s))
		synctest.Wait()
		empty()
		undo = machine.Succeeded
		result := mustRun(t, c, s)
		require.Equal(t, store.StatusFailed, result.Status)
		require.Contains(t, result.Reason, "the store lost this abort")
		require.Equal(t, []string{"a0", "a1", "c1", "c1", "c0"}, branches.of(s.GID))
		require.Equal(t, store.Marks("yyny--"), mustGet(t, model, s.GID).Marks)
		require.EqualValues(t, 1, settled(t, c).LostWrites)
	})
}

// The store keeps finished sagas for less time than one is deferred, or not at all.
// What is known of an unfinished one does not end with that.
func TestTakeover_StoreHasLostTheAbortOfALongPause_IsWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, retention := range []time.Duration{0, time.Second} {
		t.Run(retention.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(retention)
				var mended, another atomic.Bool
				back := make(chan func(), 10)
				branches := refusing(1)
				refuses := branches.answer
				branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
					switch {
					case another.Load():
						return machine.Succeeded, ""
					case c.Branch == store.Action(1):
						back <- model.Snapshot()
					case c.Branch.IsCompensation() && !mended.Load():
						return machine.Ongoing, "not yet"
					}
					return refuses(ctx, c)
				}
				cfg := unhurried()
				cfg.Lease, cfg.RequestTimeout, cfg.RetryInterval = time.Minute, time.Second, 10*time.Minute
				c := start(t, model, branches, cfg)
				s := newSaga(2)
				require.NoError(t, c.Submit(t.Context(), s))
				synctest.Wait()
				(<-back)()
				mended.Store(true)
				time.Sleep(time.Hour)
				require.Equal(t, []string{"a0", "a1", "c1", "c1", "c0"}, branches.of(s.GID))
				require.EqualValues(t, 1, settled(t, c).LostWrites)

				another.Store(true) // and may have its gid
				require.NoError(t, c.Submit(t.Context(), s))
				time.Sleep(time.Minute)
				require.Equal(t, []string{"a0", "a1", "c1", "c1", "c0", "a0", "a1"}, branches.of(s.GID))
			})
		})
	}
}

// A process was stopped while it ran a saga. Another one has ended that, nothing of
// it is kept, and its gid is another saga's now, which is not mended.
func TestRun_GidIsAnotherSagas_LeavesThatAlone(t *testing.T) {
	t.Parallel()
	for name, claimed := range map[string]bool{"created here": false, "claimed here": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := memstore.New(0)
				cfg := unhurried()
				cfg.Lease, cfg.RequestTimeout = 10*time.Second, 3*time.Second
				stopped := refusing(1)
				refuses := stopped.answer
				stopped.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
					if c.Branch == store.Compensation(1) {
						time.Sleep(time.Minute)
					}
					return refuses(ctx, c)
				}
				a := start(t, model, stopped, cfg)
				s := newSaga(2)
				if claimed {
					const body = `{"steps":[{"action":"http://a","compensate":"http://b"},{"action":"http://c","compensate":"http://d"}]}`
					create(t, model, s.GID, body, 2)
				} else {
					require.NoError(t, a.Submit(t.Context(), s))
				}
				time.Sleep(3 * time.Second)
				require.Equal(t, []string{"a0", "a1", "c1"}, stopped.of(s.GID))
				next := &branches{}
				var pause atomic.Int64
				next.answer = func(context.Context, saga.Call) (machine.Outcome, string) {
					time.Sleep(time.Duration(pause.Load()))
					return machine.Succeeded, ""
				}
				b := start(t, model, next, cfg)
				time.Sleep(20 * time.Second)
				require.Equal(t, []string{"c1", "c0"}, next.of(s.GID))
				pause.Store(int64(40 * time.Second))
				s.RequestTimeout = 2 * time.Minute
				got := <-runs(t, b, s)
				require.NoError(t, got.err)
				require.Equal(t, saga.Result{Status: store.StatusSucceeded}, got.result)
				require.Zero(t, settled(t, a).LostWrites)
			})
		})
	}
}

// What is remembered of an aborted saga does not harm another that has its gid after
// its retention.
func TestSubmit_GidUsedAgainAfterAnAbort_IsAnotherSaga(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const retention = time.Minute
		all := refusing(0)
		c := start(t, memstore.New(retention), all, unhurried())
		s := newSaga(1)
		require.Equal(t, store.StatusFailed, mustRun(t, c, s).Status)
		time.Sleep(retention)
		all.answer = nil
		require.Equal(t, saga.Result{Status: store.StatusSucceeded}, mustRun(t, c, s))
		require.Zero(t, settled(t, c).LostWrites)
	})
}

// The store loses an abort and is away while it is to be written again: that is one
// loss, however often it is tried.
func TestRun_StoreLosesTheAbortAndIsAway_CountsOneLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := memstore.New(time.Hour)
		back := func() {}
		var away atomic.Int64
		branches := refusing(1)
		refuses := branches.answer
		branches.answer = func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			switch c.Branch {
			case store.Action(1):
				back = model.Snapshot()
			case store.Compensation(1), store.Compensation(0): // a loss each
				back()
				away.Store(4)
			}
			return refuses(ctx, c)
		}
		c := start(t, &badWriter{model, func(ctx context.Context, changes []store.Change, to store.Applier) []error {
			if away.Add(-1) >= 0 {
				return all(errCut, changes)
			}
			return to.Apply(ctx, changes)
		}}, branches, unhurried())
		s := newSaga(2)
		got := <-runs(t, c, s)
		require.NoError(t, got.err)
		const again = "the store lost this abort, so it was written again: "
		require.Equal(t, saga.Result{Status: store.StatusFailed, Reason: again + again + "step 2, action: no money left"}, got.result)
		require.Equal(t, []string{"a0", "a1", "c1", "c0"}, branches.of(s.GID))
		require.EqualValues(t, 2, settled(t, c).LostWrites)
	})
}
