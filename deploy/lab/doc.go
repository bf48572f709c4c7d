// Package lab starts and stops real servers for tests and benchmarks (Redis,
// MariaDB or MySQL, PostgreSQL): from the binaries on PATH or where their packages
// put them, on free ports of the loopback interface, in temporary directories.
//
// What it guarantees:
//
//   - A server that Start… returned answers: it was asked over the port that
//     Addr names, and it was this server that answered.
//   - A server that did not start leaves nothing behind, and the error holds
//     its last words.
//   - Unless its settings say otherwise, a server lets nobody in without a random
//     password, which is in no argument, environment or log. Root runs it as the
//     account of its package, without capabilities; only that account can read
//     its files.
//   - No server outlives the process that started it, not even when that one is
//     killed with SIGKILL. Its temporary directory may; the next lab on the
//     same host sweeps it.
//
// [Server] is the same for every kind of server; a kind, such as Redis,
// contributes its command line and its own way of saying that it is ready.
// Below it, [StartProcess] runs any program under the same rules.
//
// For tests of what a slow disk and a crash do, [Server.SlowSync] delays the syncs
// of a server, and [Server.Kill] ends it as a crash would.
//
// Installing the binaries is left to the user (make deps); [ErrNotInstalled]
// says how. The content of a server is its client's affair.
package lab
