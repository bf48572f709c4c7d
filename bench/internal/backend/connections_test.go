package backend

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// dial is one connection more to a Redis, if it lets it in.
func dial(t *testing.T, server *lab.Server) error {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password(), PoolSize: 1, MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client.Ping(t.Context()).Err()
}

// requireOpen wants so many connections to be open, the sampler's own among them, of those
// that the server allows.
func requireOpen(t *testing.T, e engine, open, most int) {
	t.Helper()
	gotOpen, gotMost, err := e.connections(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{open, most}, []int{gotOpen, gotMost})
}

func TestUsage_ConnectionsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		for _, binary := range lab.Redis.Binaries() {
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary, Settings: map[string]string{"maxclients": "4"}})
			store, cfg := opened(t, redisAt(server))
			s, e := begin(t, cfg), store.(*redisSampler).engine
			requireOpen(t, e, 1, 4)
			require.NoError(t, dial(t, server))
			requireOpen(t, e, 2, 4)
			require.NoError(t, dial(t, server))
			require.InDelta(t, 0.75, *end(t, s).Evidence().StoreServerConns, 1e-9)
			require.NoError(t, dial(t, server))
			require.Error(t, dial(t, server))
			require.InDelta(t, 1, *end(t, s).Evidence().StoreServerConns, 0)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		k := startMySQL(t)
		execute(t, k.db, "SET GLOBAL max_connections = 10")
		store, cfg := opened(t, k.store)
		s, e := begin(t, cfg), store.(*sqlSampler).engine
		requireOpen(t, e, 2, 10)
		execute(t, openDB(t, "mysql", k.server.DSN("")), "SELECT 1")
		requireOpen(t, e, 3, 10)
		require.InDelta(t, 0.3, *finish(t, s).Evidence().StoreServerConns, 1e-9)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		k := startPostgres(t)
		store, cfg := opened(t, k.store)
		s := begin(t, cfg)
		requireOpen(t, store.(*postgresSampler).engine, 2, 97) // of 100, three are kept for superusers
		require.InDelta(t, 2.0/97, *finish(t, s).Evidence().StoreServerConns, 1e-9)
	})
}
