package saga_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/storetest"
)

// The tests of this file are about stores that lose what they have acknowledged:
// a Redis that does not sync each write and crashes, or a failover to a replica
// that is behind.

// ended is what a client of Run was told.
type ended struct {
	result saga.Result
	err    error
}

// runs has a client run a saga.
func runs(t *testing.T, c *saga.Coordinator, s *saga.Saga) <-chan ended {
	told := make(chan ended, 1)
	go func() {
		result, err := c.Run(t.Context(), s)
		told <- ended{result, err}
	}()
	return told
}

// Redis keeps nothing on disk, and is started anew while an action is under way.
// That the saga is gone then is not its success.
func TestRun_RedisLosesTheSaga_IsNotSuccess(t *testing.T) {
	t.Parallel()
	server := lab.TestRedis(t, lab.RedisConfig{})
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
		"kept, so it was lost":                        {time.Hour, false, false, false, saga.Result{}, saga.ErrEndUnknown, 1},
		"kept, aborting, so it was lost":              {time.Hour, false, false, true, saga.Result{}, saga.ErrEndUnknown, 1},
		"not kept: our end, or somebody's":            {0, true, false, false, saga.Result{}, saga.ErrEndUnknown, 0},
		"not kept: somebody's end, or ours":           {0, false, true, false, saga.Result{}, saga.ErrEndUnknown, 0},
		"not kept, aborting: it can only have failed": {0, true, false, true, saga.Result{Status: store.StatusFailed, Reason: "step 2, action: no money left"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := storetest.NewModel(tt.retention)
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
					case tt.stopped:
						require.NoError(t, other.ForceStop(ctx, s.GID, "by hand"))
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
