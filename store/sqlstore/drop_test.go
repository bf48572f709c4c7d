package sqlstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func (k *kind) schemas(t *testing.T, s *Store, name string) int64 {
	t.Helper()
	return s.number(t, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", name)
}

func TestDrop_LeavesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s, other := open(t, cfg), open(t, k.config())
		requireApplied(t, s, create(1))
		requireApplied(t, other, create(1))
		require.EqualValues(t, 1, k.schemas(t, other, cfg.Schema))
		require.NoError(t, s.Drop(t.Context()))
		require.Zero(t, k.schemas(t, other, cfg.Schema))
		require.NoError(t, s.Drop(t.Context()), "twice is allowed")
		require.Equal(t, 1, stageOf(t, other, 1))

		again := open(t, cfg)
		require.Equal(t, 0, stageOf(t, again, 1))
		requireApplied(t, again, create(1))
	})
}

func TestDrop_LeavesWhatIsNotOurs(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s, other := open(t, cfg), open(t, k.config())
		s.mustExec(t, "CREATE TABLE theirs (n INT)")
		require.NoError(t, s.Drop(t.Context()))
		require.EqualValues(t, 1, k.schemas(t, other, cfg.Schema))
		s.mustExec(t, "INSERT INTO theirs VALUES (1)")
		require.EqualValues(t, 1, s.number(t, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", cfg.Schema))
	})
}

func TestDrop_OfAClosedStore(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		s := openOnly(t, cfg)
		require.NoError(t, s.Close())
		require.Error(t, s.Drop(context.WithoutCancel(t.Context())))
		require.EqualValues(t, 1, k.schemas(t, open(t, k.config()), cfg.Schema))
	})
}
