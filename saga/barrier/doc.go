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
// PostgreSQL. Each mark is a row, in the table and format of dtm's Go client, so both
// may be used together. [CreateTable] creates the table. The participant deletes rows
// of old sagas: column create_time is indexed.
//
// # Redis
//
// [Barrier.AdjustRedis] adds to a balance, [Barrier.CallRedis] runs any script. Each mark
// is a key, in dtm's format. Keep the keys until the longest saga has made its last call,
// or that call may be done twice. For the same reason the server must not evict keys
// (maxmemory-policy noeviction). On Redis Cluster all keys of a script must share a hash
// tag; the key of a mark has the tag of the gid.
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
// Local messages of dtm (op "msg") are not supported.
package barrier
