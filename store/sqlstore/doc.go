// Package sqlstore keeps sagas on a MariaDB, MySQL or PostgreSQL server: MariaDB
// 10.3, MySQL 5.7.20, PostgreSQL 12, or later.
//
// # Tables
//
// They are in a schema of their own, which on MariaDB and MySQL is a database:
//
//	saga            a row for each saga
//	saga_migration  the steps of the schema's history that were applied
//	saga_flush      MariaDB and MySQL: a row that is changed to have the log written
//
// A row of saga contains the record as package store describes it, and done, which
// is true if the status is final. If it is, due is when the saga's retention ends. So
// one column, and one index entry, serves the claim of unfinished sagas and the
// retention of finished ones. Times are milliseconds since 1970 by the server's clock,
// whatever its time zone.
//
// The indexes, and what a saga costs them:
//
//   - By gid, the primary key: every call finds its sagas by it. A saga is inserted
//     once. PostgreSQL inserts it again when due changes.
//   - By done and due: for the claim, the retention, Stats, and List of unfinished
//     sagas. A saga is inserted once, and moved when it is claimed, deferred or ended.
//     On PostgreSQL these are two partial indexes. The one for the claim contains the
//     unfinished sagas, and those that ended since the table was last vacuumed.
//
// InnoDB stores rows in the order of their primary key. Gids that begin with the time,
// as the coordinator's own do, make new rows neighbours, and rows that end as well.
// With random gids every new saga changes another page of the table, which costs
// nothing as long as the table fits the buffer pool. A serial number as primary key
// would need a second index by gid, which is as random and, for rows this short, half
// as large. Measured, that made a saga a fifth costlier. Every column that a
// transition writes keeps its length, except note and owner, so InnoDB changes the row
// in place and does not write the body again. PostgreSQL writes a new row version. It
// does not copy a body of more than about 2 KB, and pages keep free space for the new
// version after a mark, which then changes no index.
//
// # How it writes
//
// One Apply is one transaction, or several if the changes are many or large. On
// MariaDB and MySQL that is an INSERT of what is created and an UPDATE for each set of
// equal transitions, guarded by epoch, status and marks. They are sent together with
// their COMMIT, which the server executes if each has found all its rows. On
// PostgreSQL it is one statement, which returns what it wrote. Changes that were not
// written, because another client was first, are then applied or refused one by one,
// with their rows locked.
//
// Rows are written in the order of their gids within a statement. A transaction that
// loses a deadlock all the same has had no effect and is tried again, up to maxTries
// times. Nothing else is tried again: when a connection is lost the outcome is
// unknown, and the caller must read the saga.
//
// A transaction that has waited for a lock for a second is split: the changes whose
// rows are locked fail, and all others are written. For the next noWaitFor no lock is
// waited for. So a row that stays locked costs one second once, and then a few
// statements each time. Only MySQL before 8.0, which has no NOWAIT, waits for a second
// each time.
//
// A host that vanishes in a transaction (no FIN: power, network) leaves its locks to a
// session that the server still believes in. Session settings limit how long: see
// Config.Lease. A batch never waits for the client with rows locked. Claims, and
// changes that are applied one by one, do.
//
// # How it reads
//
// InnoDB shows a commit before it is on disk. Without a binlog, Get, List and the
// refusals of Apply therefore wait for a commit to saga_flush that begins after the
// reading; concurrent calls share one. Get does not wait for a saga that has not
// changed since an earlier Get waited. PostgreSQL shows a commit once it is on disk.
//
// In class D4 all of them wait, on both kinds of server, until a replica has what was read.
//
// # What it leaves to others
//
// The server's configuration decides how durable an acknowledged write is; Settings
// returns the class. Connections are package sqlconn's.
package sqlstore
