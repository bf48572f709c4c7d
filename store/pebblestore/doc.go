// Package pebblestore keeps sagas in a local directory with Pebble, an embedded
// log-structured store. It needs no server.
//
// It guarantees what package store asks for, with the durability class D3: when
// Apply returns, its changes have been fsynced, once for the whole call. With
// [Config].Sync off the class is D2. One process at a time can open a directory.
//
// # Layout
//
// The first byte of a key is its kind:
//
//	a + id            an unfinished saga: gid and record
//	x + id            its body, if that is longer than 1 KiB
//	d + id            a finished saga: gid, record and body
//	g + bucket + gid  the id of a finished saga
//
// Ids rise with time, and a saga that ends gets a new one. So finished sagas are
// stored in the order in which they ended, and nearly all writes go to the end of
// their key range: inserting them is cheap, and Pebble has nothing to merge them
// with. Only g is unordered, and it is small.
//
// A saga's record contains its note and its body, so a change of an unfinished saga
// writes them again. For a body of up to 1 KiB that costs less than inserting and
// deleting a second key. The three changes of a saga with a body of 330 bytes add
// 1.2 KB to the log and leave 100 bytes of compressed tables.
//
// Finished sagas are collected in buckets, each half a retention wide. A bucket
// whose last saga has expired is dropped by two range tombstones, so Pebble deletes
// files instead of searching for keys. Reads hide an expired saga until then.
//
// # In memory
//
// All unfinished sagas are in memory as well, at about 220 bytes plus gid, note and
// body, and so is the due index, which is a heap. A transition therefore reads
// nothing from disk. For the finished sagas there is a Bloom filter per bucket, 2 to
// 4 bytes a saga, which spares a Create most searches for its gid.
//
// Changes are checked and handed to Pebble under one mutex. The wait for the disk
// comes after it, so concurrent calls share an fsync. Until the fsync has ended,
// memory is ahead of the disk: a reader waits for what it saw to be on disk.
//
// # When a write fails
//
// The first write that fails, because the disk is full or broken, stops the store.
// That call and all later ones return the error, the directory no longer changes,
// and all acknowledged changes are safe in it. Once there is room, any process can
// open the directory again. Pebble itself would end the process or panic; disk.go
// says why, and prevents it. The store stops in the same way when Pebble finds
// itself broken, for instance by a missing file. Then only a new process can open
// the directory.
//
// # What it leaves to others
//
// Batching. A saga of three changes costs 78 µs of CPU when a call carries three
// changes, 23 µs with 21, 14 µs with 66 and 10 µs with 192. Of these, 8 µs are the
// saga's own; a call's fsync and the wait for it cost 70 to 100 µs.
package pebblestore
