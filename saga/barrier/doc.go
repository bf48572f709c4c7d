// Package barrier protects a participant of a saga from branch calls that are repeated, late
// or out of order. The coordinator cannot: only the participant's own transaction knows
// what has been done.
//
// A branch call leaves a mark in the same transaction as its work. A [Barrier] decides by
// the marks, also for concurrent calls:
//
//	call                                   | what happens                 | answer
//	---------------------------------------+------------------------------+--------
//	the first                              | marked, and the work is done | success
//	a repeat                               | nothing                      | success
//	a repeat while the first is running    | waits for it                 | as above
//	a compensation without its action      | both are marked, no work     | success
//	an action after its compensation       | nothing                      | success
//	any whose work fails                   | rolled back with its mark    | the work's error
//
// An action after its compensation was delayed on the network until the saga was
// compensated. Its sender no longer waits for the response.
//
// # SQL
//
// [Barrier.Call] and [Barrier.CallTx] work with MariaDB or MySQL (InnoDB) and
// PostgreSQL, by one row for each mark. dtm's Go client keeps the same rows in the
// same table, and either knows the calls that the other has seen. [CreateTable]
// makes the table where there is none. Deleting rows whose sagas have long ended
// is left to the participant: column create_time is indexed.
//
// # Redis
//
// [Barrier.AdjustRedis] adds to a balance, [Barrier.CallRedis] runs any script,
// with one key for each mark; they are dtm's too. The keys expire, which must not
// be before the longest saga has made its last call, or that one is done twice.
// For the same reason the server must not evict (maxmemory-policy noeviction). On
// Redis Cluster all keys of a script have to share a hash tag; a mark's key has the
// one that the gid has.
//
// # Over HTTP
//
// A branch that is called over HTTP reads its barrier with [FromQuery] and answers
//
//	error           | status | what the coordinator does
//	----------------+--------+-----------------------------------------------
//	nil             | 200    | goes on
//	[ErrRefused]    | 409    | after an action, undoes the saga;
//	                |        | after a compensation, calls it again later
//	any other       | 500    | calls the branch again later
//
// What the business refuses is the participant's to decide, and so is how its work
// says it: with ErrRefused or an error of its own.
//
// Local messages of dtm (op "msg") are no branches, and are not handled here.
package barrier
