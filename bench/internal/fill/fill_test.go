package fill

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/audit"
	"sagabench/internal/testkit"
	"sagabench/store"
)

func TestRun_PutsInSagasThatPassAnAudit(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	var most atomic.Int64
	require.NoError(t, Run(t.Context(), s, 1234, 3, []byte("{}"), func(n int64) { most.Store(max(most.Load(), n)) }))
	require.EqualValues(t, 1234, most.Load())
	found, err := audit.Store(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	require.EqualValues(t, 1234, found.Sagas)
	require.EqualValues(t, 1234, *found.Terminal)
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
