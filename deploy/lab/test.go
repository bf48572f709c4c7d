package lab

import "context"

// TB is what TestRedis and its like need of a *testing.T or *testing.B; this package does
// not import testing, since programs link it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// TestRedis starts a Redis server for one test and stops it when the test ends.
// Without the binary it fails the test, saying what to install: a test that
// skips shows nothing.
func TestRedis(t TB, cfg RedisConfig) *Server {
	t.Helper()
	server, err := StartRedis(context.Background(), cfg)
	return untilEnd(t, server, err)
}

// TestMySQL is TestRedis for MariaDB or MySQL.
func TestMySQL(t TB, cfg MySQLConfig) *Server {
	t.Helper()
	server, err := StartMySQL(context.Background(), cfg)
	return untilEnd(t, server, err)
}

// TestPostgres is TestRedis for PostgreSQL.
func TestPostgres(t TB, cfg PostgresConfig) *Server {
	t.Helper()
	server, err := StartPostgres(context.Background(), cfg)
	return untilEnd(t, server, err)
}

// untilEnd has a server that was started stop when the test ends.
func untilEnd(t TB, server *Server, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop the server: %v; it said: %s", err, lastLines(server.Log(), 20))
		}
	})
	return server
}
