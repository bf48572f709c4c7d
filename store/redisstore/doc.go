// Package redisstore keeps sagas on a Redis server, version 5.0 or later.
//
// # Keys
//
//	PREFIX:layout          version and number of shards: "1 shards=N"
//	PREFIX:{S}             the due index of shard S: a sorted set of saga keys, and the ballast
//	PREFIX:{S}:GID         a saga; package lua describes the string
//
// S is computed from the gid, so a saga and its due index share a hash slot. The
// first use of a prefix fixes its number of shards, one by default.
//
// # How it writes
//
// The scripts of package lua make every change, many sagas per call. One Apply is one
// round trip: a pipeline with one call per script, more for batches over lua.MaxSagas.
// If the server has lost the scripts (restart, failover, SCRIPT FLUSH), the store loads
// them and repeats only the calls that the server refused. Nothing else is repeated,
// neither by this package nor by the client library: after a lost reply the outcome is
// unknown, and the caller has to read the saga.
//
// # Not covered
//
// The server's configuration decides how durable an acknowledged write is; Settings
// returns the class. Cluster and Sentinel are not supported.
package redisstore
