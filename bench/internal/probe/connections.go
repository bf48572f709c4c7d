package probe

import (
	"context"
	"fmt"
	"strconv"
)

func (r *redisServer) connections(ctx context.Context) (open, most int, err error) {
	const allowed = "maxclients"
	fields, err := r.ask(ctx, "clients")
	if err != nil {
		return 0, 0, err
	}
	if fields[allowed] == "" { // older servers tell it as a setting only
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		settings, err := r.client.ConfigGet(ctx, allowed).Result()
		if err != nil {
			return 0, 0, fmt.Errorf("CONFIG GET %s: %w", allowed, err)
		}
		fields[allowed] = settings[allowed]
	}
	n := numbers{fields: fields}
	return int(n.whole("connected_clients")), int(n.whole(allowed)), n.err
}

func (m *mysqlServer) connections(ctx context.Context) (open, most int, err error) {
	status, err := m.values(ctx, "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'")
	if err != nil {
		return 0, 0, err
	}
	if open, err = strconv.Atoi(status["Threads_connected"]); err != nil {
		return 0, 0, err
	}
	err = m.row(ctx, []any{&most}, "SELECT @@GLOBAL.max_connections")
	return open, most, err
}

// connections leaves out those that are kept free for superusers.
func (p *postgresServer) connections(ctx context.Context) (open, most int, err error) {
	err = p.row(ctx, []any{&open, &most}, "SELECT SUM(numbackends)::int, "+
		"current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int FROM pg_stat_database")
	return open, most, err
}

// readConnections asks the store's server which share of the connections that it allows
// is open, the probe's own among them.
func (s *snapshot) readConnections(ctx context.Context, store storeServer) {
	open, most, err := store.connections(ctx)
	s.fail("the connections of the store's server", err)
	if err == nil && most > 0 {
		share := min(1, float64(open)/float64(most))
		s.storeConns = &share
	}
}
