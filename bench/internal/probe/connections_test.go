package probe

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// connect is one connection more to a Redis, if it lets it in.
func connect(t *testing.T, server *lab.Server) error {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password(), PoolSize: 1, MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client.Ping(t.Context()).Err()
}

// requireOpen wants so many connections to be open, the probe's own among them, of those
// that the server allows.
func requireOpen(t *testing.T, s *Sampler, open, most int) {
	t.Helper()
	gotOpen, gotMost, err := s.store.connections(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{open, most}, []int{gotOpen, gotMost})
}

func TestUsage_ConnectionsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		for _, binary := range lab.Redis.Binaries() {
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary, Settings: map[string]string{"maxclients": "4"}})
			cfg := Default()
			cfg.Store = redisAt(server)
			s := begin(t, cfg)
			requireOpen(t, s, 1, 4)
			require.NoError(t, connect(t, server))
			requireOpen(t, s, 2, 4)
			require.NoError(t, connect(t, server))
			require.InDelta(t, 0.75, *end(t, s).Evidence().StoreServerConns, 1e-9)
			require.NoError(t, connect(t, server))
			require.Error(t, connect(t, server))
			require.InDelta(t, 1, *end(t, s).Evidence().StoreServerConns, 0)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		k := startMySQL(t)
		execute(t, k.db, "SET GLOBAL max_connections = 10")
		s := begin(t, k.config())
		requireOpen(t, s, 2, 10)
		execute(t, openDB(t, "mysql", k.server.DSN("")), "SELECT 1")
		requireOpen(t, s, 3, 10)
		require.InDelta(t, 0.3, *finish(t, s).Evidence().StoreServerConns, 1e-9)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		k := startPostgres(t)
		s := begin(t, k.config())
		open, most, err := s.store.connections(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, open, 2) // and the probe's second, while it looks for locks
		require.LessOrEqual(t, open, 3)
		require.Equal(t, 97, most, "of 100, three are kept for superusers")
		require.InDelta(t, 3.0/97, *finish(t, s).Evidence().StoreServerConns, 1.5/97)
	})
}
