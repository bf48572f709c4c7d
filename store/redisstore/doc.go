// Package redisstore keeps sagas on a Redis server, version 5.0 or later, on a Redis
// Cluster, or on the master that sentinels name.
//
// # Keys
//
//	PREFIX:layout          version and number of shards: "2 shards=N"
//	PREFIX:{TAG}           the due index of a shard: a sorted set of saga keys, and the ballast
//	PREFIX:{TAG}:GID       a saga; package lua describes the string
//
// The shard is computed from the gid, so a saga and its due index share a hash slot. The
// first use of a prefix fixes its number of shards. The slots of the shards are spread
// evenly over all slots. So shards move between the servers of a cluster as slots do, and
// no more servers than shards have work.
//
// # How it writes
//
// The scripts of package lua make every change, many sagas per call. One Apply is one
// round trip to each server that its sagas are on, to all at once: a pipeline with one
// call per script, on a cluster one per script and shard, more for batches over
// lua.MaxSagas. If a server has lost the scripts (restart, failover, SCRIPT FLUSH), the
// store loads them and repeats only the calls that the server refused. On a cluster it also
// repeats calls for slots that have moved or are moving: the server refused those, too.
// Nothing else is repeated, neither by this package nor by the client library: after a lost
// reply the outcome is unknown, and the caller has to read the saga.
//
// # A lost server
//
// Each server of a cluster is a partition of its own (store.Partitioned), so one that is
// slow or lost holds up its own sagas. The store finds out about a failover when a call to
// the lost server has failed. Reads of all servers (List, Stats, Settings) fail until then;
// ClaimDue claims the sagas of the others. What a slow server answers too late is for
// the next call.
//
// While slots move, List of finished sagas may miss sagas that move.
//
// # Not covered
//
// The servers' configuration decides how durable an acknowledged write is; Settings
// returns the lowest class. A failover loses the writes that the replica has not received.
package redisstore
