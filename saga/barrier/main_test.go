package barrier_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
	"sagabench/saga/barrier"
)

// servers are shared by all tests; each has accounts and gids of its own.
var servers struct{ mysql, postgres *lab.Server }

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runTests starts the servers without regard to durability, which is not what
// these tests are about.
func runTests(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if servers.mysql, err = lab.MySQL.Start(ctx, lab.Config{Settings: map[string]string{
		"loose_debug_no_sync": "",
	}}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, servers.mysql.Stop()) }()
	if servers.postgres, err = lab.Postgres.Start(ctx, lab.Config{Settings: map[string]string{
		"fsync": "off",
	}}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, servers.postgres.Stop()) }()
	for _, d := range []barrier.Dialect{barrier.MySQL, barrier.Postgres} {
		if err := prepare(ctx, d); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

func prepare(ctx context.Context, dialect barrier.Dialect) error {
	admin, err := openDB(dialect, "", "")
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE bank"); err != nil {
		return err
	}
	db, err := openDB(dialect, "bank", "")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := barrier.CreateTable(ctx, db, dialect, barrier.DefaultTable); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE account (id varchar(100) PRIMARY KEY, balance int NOT NULL)")
	return err
}

// openDB opens a database with options for the driver, in its own words.
func openDB(dialect barrier.Dialect, database, options string) (*sql.DB, error) {
	if dialect == barrier.MySQL {
		config, err := mysql.ParseDSN(servers.mysql.DSN(database) + "?" + options)
		if err != nil {
			return nil, err
		}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
	return sql.Open("pgx", servers.postgres.DSN(database)+"&"+options)
}
