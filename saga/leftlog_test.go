package saga_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// Whoever took a saga over may have deferred it: then it has no owner to be named.
func TestCoordinator_SaysThatALostSagaIsDeferred(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		s := open()
		log := &testkit.Log{}
		called, goOn := make(chan bool), make(chan bool)
		at := &branches{answer: func(context.Context, saga.Call) (machine.Outcome, string) {
			called <- true
			<-goOn // whatever its time
			return machine.Succeeded, ""
		}}
		cfg := patient()
		cfg.Lease, cfg.RequestTimeout, cfg.PollInterval = 200*time.Millisecond, 100*time.Millisecond, time.Hour
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		c := start(t, s, at, cfg)
		sg := newSaga(1)
		require.NoError(t, c.Submit(t.Context(), sg))
		<-called
		until(t, "another takes it over", func() bool {
			records, err := s.ClaimDue(t.Context(), "other", time.Hour, 1)
			require.NoError(t, err)
			return len(records) == 1
		})
		require.NoError(t, s.Apply(t.Context(), []store.Change{&store.Transition{
			GID: sg.GID, Epoch: 2, From: store.StatusSubmitted, To: store.StatusSubmitted, Due: time.Hour, Release: true,
		}})[0])
		close(goOn)
		until(t, "it was left", func() bool { return c.Counters().Lost == 1 })
		until(t, "it is logged", func() bool { return log.String() != "" })
		require.Contains(t, log.String(), `reason="taken over, and deferred since"`)
	})
}
