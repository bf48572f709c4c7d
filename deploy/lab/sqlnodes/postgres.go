package sqlnodes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"sagabench/deploy/lab"
)

// standbyName is how the standby names itself to the primary.
const standbyName = "replica"

type postgresEngine struct{}

func (postgresEngine) settings() map[string]string {
	return map[string]string{"synchronous_standby_names": standbyName}
}

func (postgresEngine) replicaSettings() map[string]string {
	return map[string]string{
		"synchronous_standby_names": "", "cluster_name": standbyName,
		"wal_retrieve_retry_interval": "100ms", // the default is 5 s, after each restart of the primary
	}
}

// follow waits only: the standby has followed since its start.
func (e postgresEngine) follow(ctx context.Context, primary, _ *lab.Server) error {
	return poll(ctx, func() (why string, err error) {
		var streams bool
		err = e.ask(ctx, primary, &streams, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming')", standbyName)
		if !streams {
			why = "the standby does not follow yet"
		}
		return why, err
	})
}

func (e postgresEngine) receiver(ctx context.Context, replica *lab.Server) (pid int, err error) {
	err = e.ask(ctx, replica, &pid, "SELECT pid FROM pg_stat_wal_receiver")
	return pid, err
}

func (e postgresEngine) promote(ctx context.Context, replica *lab.Server) error {
	var promoted bool
	err := e.ask(ctx, replica, &promoted, "SELECT pg_promote(true, $1)", int(followTimeout.Seconds()))
	if err == nil && !promoted {
		err = fmt.Errorf("it is still a standby after %v", followTimeout)
	}
	return err
}

// ask runs a query of one value.
func (postgresEngine) ask(ctx context.Context, server *lab.Server, value any, query string, args ...any) error {
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, query, args...).Scan(value)
}
