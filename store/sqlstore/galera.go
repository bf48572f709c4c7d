package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strconv"

	"sagabench/store/sqlstore/sqlconn"
)

// A node of Galera executes a transaction by itself. With COMMIT it sends the rows that
// this wrote to all nodes, which order them alike. If the transaction of another node
// was first with one of these rows, COMMIT fails like a deadlock, and persist tries
// again. So nothing is decided by rows that a transaction reads and does not write,
// and locks, NOWAIT and SKIP LOCKED are among the clients of one node only.
//
// The transaction that was first may also abort another one earlier, between two
// statements. If both are in one message, MariaDB (10.11.19) may not say so: it executes
// what follows without a transaction, and COMMIT succeeds. So each statement is a
// message.

// findGalera finds out whether the server is a node of Galera.
func (d *mysqlDialect) findGalera(ctx context.Context, db *sql.DB) (err error) {
	if d.galera, err = sqlconn.FindGalera(ctx, db, 2*maxChunkBytes, maxChunkChanges); err != nil || !d.galera {
		return err
	}
	// Stores that changed the same row would lose to each other all the time.
	const rows = 127
	d.flushRow = strconv.Itoa(1 + rand.IntN(rows))
	// What another node has just created must be seen.
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, "SET SESSION wsrep_sync_wait = 1")
	return err
}

// migrateOnGalera runs f, which others may run at the same time: a lock of GET_LOCK is of
// one node. Who is late finds something that another has made meanwhile, and begins anew.
func (d *mysqlDialect) migrateOnGalera(ctx context.Context, db *sql.DB, f func(tx sqlconn.Session) error) error {
	const tableExists = 1050
	late := func(err error) bool {
		return d.isDeadlock(err) || sqlconn.HasNumber(err, tableExists) || sqlconn.HasNumber(err, duplicateEntry)
	}
	return sqlconn.Persist(ctx, maxTries, late, func() error {
		return sqlconn.OnConnection(ctx, db, func(conn *sql.Conn) error { return f(conn) })
	})
}
