package fill

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/store"
)

func TestRun_PutsInSagasThatHaveSucceeded(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	var most atomic.Int64
	require.NoError(t, Run(t.Context(), s, 1234, 3, []byte("{}"), func(n int64) { most.Store(max(most.Load(), n)) }))
	require.EqualValues(t, 1234, most.Load())
	there := map[string]bool{}
	require.NoError(t, store.Walk(t.Context(), s, store.Query{Limit: 1000}, func(r store.Record) {
		there[r.GID] = true
		require.Equal(t, store.StatusSucceeded, r.Status)
		require.EqualValues(t, "y-y-y-", r.Marks)
		require.Equal(t, "{}", string(r.Body))
	}))
	require.Len(t, there, 1234)
	findings, err := s.(store.Verifier).Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}

func TestRun_StopsWithItsContext(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Run(ctx, s, 1e9, 2, []byte("{}"), func(int64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	page, err := s.List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.NotEmpty(t, page.Records)
}
