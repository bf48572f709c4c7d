// Package sqlnodes starts a MariaDB or PostgreSQL with a replica, for tests and benchmarks.
// The primary acknowledges no commit before the replica has it, however long that takes:
// PostgreSQL by a synchronous standby, MariaDB by semi-synchronous replication.
//
// Both are a [lab.Server], with all that the lab guarantees. To lose the primary with its
// data, use [lab.Server.Destroy], then [Replicated.Promote].
package sqlnodes
