// Package sqlstore keeps sagas on a MariaDB, MySQL or PostgreSQL server: MariaDB
// 10.3, MySQL 5.7.20, PostgreSQL 12, or later.
//
// # Tables
//
// They are in a schema of our own, which on MariaDB and MySQL is a database:
//
//	saga            a row for each saga
//	saga_migration  which steps of the schema's history this one has been taken through
//	saga_flush      MariaDB and MySQL: a row that is changed to have the log written
//
// A row of saga holds the record as package store describes it, and done, which
// is whether the status is final. Of a finished saga due is when its retention
// ends: one column, and so one index entry, serves the claim as long as the saga
// runs and the retention afterwards. Times are milliseconds since 1970 by the
// server's clock; no time zone has a say in them.
//
// What the indexes are for, and what a saga costs them:
//
//   - By gid, the primary key: every call finds its sagas by it. A saga is put in
//     once. PostgreSQL puts it in again when due changes.
//   - By done and due: for the claim, the retention, Stats, and List of what has
//     not ended. A saga is put in once, and moved when it is claimed, put off or
//     ended. On PostgreSQL these are two partial indexes. The one for the claim
//     holds what has not ended, and what has since the table was last vacuumed.
//
// InnoDB keeps rows in the order of their primary key. With gids that begin with
// the time, as the coordinator's own do, new rows are neighbours, and those that
// end are as well. With gids that are random every new saga dirties another page
// of the whole table, which costs nothing as long as that fits the buffer pool.
// A number that counts up as the primary key would keep the rows together, but
// the gid would need an index beside it, as random and, for rows as short as
// these, half as large; each update would go through both. Measured, that made a
// saga a fifth dearer. Every column that a transition writes keeps its length,
// apart from the note and the owner, so InnoDB changes the row in place and does
// not write the body again. PostgreSQL writes a row anew; a body of more than
// about 2 KB it keeps elsewhere and does not copy, and pages are left room for
// the new row of a mark, which then costs no index anything.
//
// # How it writes
//
// One Apply is one transaction, or several where changes are many or large. On
// MariaDB and MySQL that is an INSERT of what is created and an UPDATE for all
// transitions that do the same thing, each guarded by epoch, status and marks;
// they are sent together with their COMMIT, which the server reaches if each has
// found all its rows. On PostgreSQL all of it is one statement, which answers with
// what it wrote. Whatever was not written, because of a member that lost its race,
// is then looked at saga by saga, with its rows locked.
//
// Rows are written in the order of their gids within a statement. A transaction
// that lost a deadlock all the same has had no effect and is tried again, some
// times. Nothing else is: when a connection is lost the outcome is unknown, and the
// caller has to look.
//
// A transaction that has waited for a lock for a second is taken apart: the changes
// whose rows are locked fail, and all others are written. For some seconds after
// that no lock is waited for, so a row that stays locked costs one second once, and
// then some statements each time. Only MySQL before 8.0, which has no NOWAIT, waits
// for a second again whenever it meets it.
//
// A host that vanishes in a transaction (no FIN: power, network) leaves its locks
// to a session that the server still believes in. Session settings bound how long:
// see Config.Lease. A batch has no such moment; claims, and what is looked at saga
// by saga, do.
//
// # How it reads
//
// InnoDB shows a commit before it is on disk. Without a binlog, Get, List and the
// refusals of Apply therefore wait for a commit to saga_flush that begins after the
// reading; those that wait at the same time share one. Get does not wait for a saga
// that has not changed since it last did. PostgreSQL shows a commit once it is on
// disk.
//
// # What it leaves to others
//
// How durable an acknowledged write is, is the server's configuration; Settings
// says what that comes to.
package sqlstore
