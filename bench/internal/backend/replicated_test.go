package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/store/open"
)

// startPair starts a server with a replica, and returns what executes a statement or command
// on the server.
func startPair(t *testing.T, driver string) (server Server, do func(t *testing.T)) {
	t.Helper()
	target, err := open.Parse(driver, open.DefaultConfig())
	require.NoError(t, err)
	servers, err := Start{Start: true, Nodes: 1, Replicas: ReplicasOfClass, Durability: "D4"}.Check(driver, &target)
	require.NoError(t, err)
	require.True(t, servers.Replicated())
	started, err := servers.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Stop()) })
	require.Len(t, started.URLs, 1)
	server = Server{Driver: driver, URL: started.URL(), Local: true, PIDs: started.PIDs, Schema: "place", Replicas: started.Replicas}
	if driver == open.Redis {
		opt, err := redis.ParseURL(started.URL())
		require.NoError(t, err)
		client := redis.NewClient(opt)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		n := 0
		return server, func(t *testing.T) {
			n++
			require.NoError(t, client.HSet(t.Context(), fmt.Sprintf("key:%06d", n), "f", strings.Repeat("x", 100)).Err())
			require.NoError(t, client.Wait(t.Context(), 1, 0).Err())
		}
	}
	name, dsn, places := "mysql", strings.TrimPrefix(started.URL(), "mysql://"), "CREATE DATABASE place"
	if driver == open.Postgres {
		name, dsn, places = "pgx", started.URL(), "CREATE SCHEMA place"
	} else {
		user, address, _ := strings.Cut(strings.TrimSuffix(dsn, "/"), "@")
		dsn = user + "@tcp(" + address + ")/"
	}
	db := openDB(t, name, dsn)
	execute(t, db, places)
	execute(t, db, "CREATE TABLE place.saga (id INT, body TEXT)")
	return server, func(t *testing.T) {
		execute(t, db, "INSERT INTO place.saga (body) VALUES ('"+strings.Repeat("x", 1000)+"')")
	}
}

// A replica costs what its server uses. What clients send is the primary's alone.
func TestUsage_OfAServerWithAReplica_IsTheSumOfBoth(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{open.Redis, open.MySQL, open.Postgres} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			server, do := startPair(t, driver)
			alone := server
			alone.Replicas, alone.PIDs = nil, server.PIDs[:1]
			require.Equal(t, server.PIDs, mustOpen(t, server).PIDs())
			do(t)
			both, one := begin(t, config(server)), begin(t, config(alone))
			const calls = 200
			for range calls {
				do(t)
			}
			primary, sum := finish(t, one), finish(t, both)
			require.Greater(t, *sum.Total.StoreCPUUS, *primary.Total.StoreCPUUS)
			require.Positive(t, *sum.Resources.StorePrimaryCores)
			require.Less(t, *sum.Resources.StorePrimaryCores, *sum.Resources.StoreCores)
			require.Greater(t, *sum.Total.StoreBytesWritten, *primary.Total.StoreBytesWritten)
			require.Greater(t, *sum.Resources.StoreRSSBytes, 1.3**primary.Resources.StoreRSSBytes)
			require.NotNil(t, sum.Resources.StoreDebtBytes)
			switch driver {
			case open.Redis:
				require.True(t, sum.Resources.StoreOneCore)
				require.GreaterOrEqual(t, *sum.Total.StoreCalls, 2.0*calls)
				require.Less(t, *sum.Total.StoreCalls, 3.0*calls, "a replica repeats what clients sent to its master")
			case open.MySQL:
				require.Greater(t, *sum.Total.StoreFsyncs, *primary.Total.StoreFsyncs)
				require.InDelta(t, calls, *sum.Total.StoreCalls, 50, "the other sampler asks, too")
				require.Nil(t, sum.Total.StoreBytesOut)
				require.Contains(t, strings.Join(sum.Failures, "\n"), "from the store: it counts the binlog that it sends to replicas, too")
			case open.Postgres:
				require.Nil(t, sum.Total.StoreFsyncs)
				require.Contains(t, strings.Join(sum.Failures, "\n"), "replica: store fsyncs: a standby does not count")
			}
		})
	}
}
