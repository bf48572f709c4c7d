package saga_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/store"
)

// BenchmarkRun is what the coordinator and group commit cost by themselves: sagas
// of two empty steps, 64 callers, over a store that forgets all it is told.
func BenchmarkRun(b *testing.B) {
	cfg := saga.DefaultConfig()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := saga.New(forgetful{}, &branches{}, cfg)
	require.NoError(b, err)
	defer kill(c)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Run(b.Context(), &saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, 2)}); err != nil {
				b.Error(err)
			}
		}
	})
}

// forgetful is no store: it is there to price what is around one.
type forgetful struct{ store.Store }

func (forgetful) Apply(_ context.Context, changes []store.Change) []error {
	return make([]error, len(changes))
}

func (forgetful) ClaimDue(context.Context, string, time.Duration, int) ([]store.Record, error) {
	return nil, nil
}
