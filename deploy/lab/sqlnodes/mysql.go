package sqlnodes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"sagabench/deploy/lab"
)

type mysqlEngine struct{}

// settings make the primary wait for the replica also while none is there, and for
// the longest time that every version takes: 49 days. Then it would go on without it.
func (mysqlEngine) settings() map[string]string {
	return map[string]string{
		"log_bin": "binlog", "server_id": "1",
		"sync_binlog":                        "1", // else a crash takes back what the replica has
		"rpl_semi_sync_master_enabled":       "ON",
		"rpl_semi_sync_master_wait_point":    "AFTER_SYNC",
		"rpl_semi_sync_master_wait_no_slave": "ON",
		"rpl_semi_sync_master_timeout":       "4294967295",
	}
}

func (mysqlEngine) replicaSettings() map[string]string {
	return map[string]string{
		"server_id": "2", "relay_log": "relay",
		"rpl_semi_sync_master_enabled": "OFF", "rpl_semi_sync_slave_enabled": "ON",
	}
}

// follow starts the replication where the primary is: both have nothing but their own
// system tables.
func (e mysqlEngine) follow(ctx context.Context, primary, replica *lab.Server) error {
	from, err := e.connect(primary)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := e.connect(replica)
	if err != nil {
		return err
	}
	defer to.Close()
	var version string
	if err := from.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	if !strings.Contains(version, "MariaDB") {
		return fmt.Errorf("the server is MySQL %s: only a MariaDB or a PostgreSQL gets a replica", version)
	}
	var position string
	if err := from.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_current_pos").Scan(&position); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"SET GLOBAL gtid_slave_pos = '" + position + "'",
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'root', MASTER_PASSWORD = '%s', "+
			"MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1", host, port, primary.Password()),
		"START SLAVE",
	} {
		if _, err := to.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("start the replication: %w", err)
		}
	}
	return poll(ctx, func() (why string, err error) {
		var name, clients string
		if err := from.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'").Scan(&name, &clients); err != nil {
			return "", err
		}
		status, err := replicaStatus(ctx, to)
		if clients == "0" || status["Slave_SQL_Running"] != "Yes" {
			why = "the replica does not follow yet"
		}
		return why, err
	})
}

func (mysqlEngine) receiver(_ context.Context, replica *lab.Server) (pid int, err error) {
	return replica.PID(), nil
}

// promote ends the replication when all is applied that was received.
func (e mysqlEngine) promote(ctx context.Context, replica *lab.Server) error {
	db, err := e.connect(replica)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "STOP SLAVE IO_THREAD"); err != nil {
		return err
	}
	err = poll(ctx, func() (why string, err error) {
		var applied string
		if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_slave_pos").Scan(&applied); err != nil {
			return "", err
		}
		status, err := replicaStatus(ctx, db)
		if received := status["Gtid_IO_Pos"]; received != applied {
			why = fmt.Sprintf("it has received %s, and applied %s", received, applied)
		}
		return why, err
	})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "STOP SLAVE")
	if err == nil {
		_, err = db.ExecContext(ctx, "RESET SLAVE ALL")
	}
	return err
}

// replicaStatus returns SHOW SLAVE STATUS by column. It fails if the replica cannot go on.
func replicaStatus(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SHOW SLAVE STATUS")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	if !rows.Next() {
		return nil, errors.Join(errors.New("it is no replica"), rows.Err())
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	status := make(map[string]string, len(columns))
	for i, name := range columns {
		status[name] = values[i].String
	}
	if problem := status["Last_SQL_Error"]; problem != "" {
		return nil, fmt.Errorf("the replica cannot apply a change: %s", problem)
	}
	return status, nil
}

func (mysqlEngine) connect(server *lab.Server) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(server.DSN(""))
	if err != nil {
		return nil, err
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
