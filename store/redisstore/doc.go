// Package redisstore keeps sagas on a Redis server, version 5.0 or later.
//
// # Keys
//
//	PREFIX:layout          how the rest is laid out: "1 shards=N"
//	PREFIX:{S}             the due index of shard S: a sorted set of saga keys, and ballast
//	PREFIX:{S}:GID         a saga; package lua describes the string
//
// S is computed from the gid, so a saga and the index that finds it again share
// a hash slot. The number of shards is fixed by the first use of a prefix, one
// unless it is set, and kept to at every later one.
//
// # How it writes
//
// Every change is made by one of package lua's scripts, many sagas to a call.
// One Apply is one round trip: a pipeline of at most one call per script and
// MaxSagas. A server that has forgotten the scripts (restart, failover, SCRIPT
// FLUSH) is given them again, and only the calls it refused are repeated.
// Nothing else is ever repeated here, neither by this package nor by the client
// library beneath it: after a lost reply the outcome is unknown, and the caller
// has to look.
//
// # What it leaves to others
//
// How durable an acknowledged write is, is the server's configuration; Settings
// says what that comes to. Cluster and Sentinel are not used yet.
package redisstore
