// Package pebblestore keeps sagas in a directory of the machine that it runs
// on, with Pebble, an embedded log-structured store. It needs no server.
//
// It guarantees what package store asks for, with the durability class D3: when
// Apply returns, what it applied has been fsynced, once for the whole call. With
// [Config].Sync off the class is D2. One process at a time can have a directory.
//
// # Layout
//
// The first byte of a key says what it holds:
//
//	a + id            an unfinished saga: gid and record
//	x + id            its body, where that is longer than 1 KiB
//	d + id            a finished saga: gid, record and body
//	g + bucket + gid  the id of a finished saga
//
// Ids rise with time. They are given out anew when a saga ends, so finished
// sagas lie in the order in which they ended, and nearly all writes go to the
// end of their key range: inserting them is cheap, and pebble has nothing to
// merge them with. Only g is out of order, and small.
//
// A saga's record holds its note and its body as well, so a change of an
// unfinished one writes them again. For a body of up to 1 KiB that costs less than
// a second key does, which has to be inserted and deleted. The 3 changes of a saga
// with a body of 330 bytes put 1.2 KB into the log, and leave 100 bytes of
// compressed tables.
//
// Finished sagas are collected in buckets, each half a retention wide. One
// whose last saga has expired is dropped whole, by two range tombstones, which
// lets pebble delete files instead of looking for keys. Until then an expired
// saga is not shown.
//
// # In memory
//
// All unfinished sagas are in memory too, at about 220 bytes and what gid, note
// and body take, and with them the due index, which is a heap. So a transition
// reads nothing from disk. Of the finished ones there is a Bloom filter per
// bucket, 2 to 4 bytes a saga, that spares a Create most of the search for its
// gid.
//
// Changes are checked and handed to pebble under one mutex, and the wait for
// the disk comes after it; so calls at the same time share an fsync. Until that
// is over memory is ahead of the disk, and whoever reads waits for what it saw.
//
// # When a write fails
//
// The first write that the disk refuses, because it is full or broken, stops
// the store: this call and all later ones answer the error, the directory stays
// as it is, and what was acknowledged is safe in it. Once there is room the
// directory can be opened again, by this process or another. Pebble itself
// would end the process or go down with it; disk.go says why and how this is
// kept from it. When pebble finds itself broken, by a file that is missing for
// instance, the store stops in the same way, but only a new process can open
// the directory.
//
// # What is left to others
//
// Batching. A saga of three changes costs 78 µs of CPU when each call carries
// three changes, 23 µs with 21, 14 µs with 66 and 10 µs with 192: 8 µs are its
// own, and 70 to 100 µs a call those of the fsync and the waiting for it.
package pebblestore
