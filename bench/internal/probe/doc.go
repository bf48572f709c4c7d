// Package probe measures what a run costs: the CPU of the load generator, of
// the app servers and of the store, and the store's bytes, calls, memory, round
// trips and fsyncs; beside it how busy the machine's cores and its network were, and
// how long callers waited for the store. It looks at the beginning and at the end of the
// measured part and gives the difference.
//
// Where the numbers come from:
//
//	load   getrusage of this process, to the microsecond
//	app    its process where it runs here (the kernel's clock ticks, 10 ms), its
//	       /metrics elsewhere and for what the store's client counts
//	store  INFO of a Redis, local or remote; the status variables of a MariaDB or
//	       MySQL, the statistics of a PostgreSQL, and the processes of either where
//	       they run here, those included that end meanwhile
//	host   the kernel's CPU times of this machine, and the counters of its network
//	       interfaces that lead elsewhere
//
// How long calls of the store took, how long they waited for one of the app's
// connections to an SQL server, and for how long clients were turned away, is what
// the app servers say; how many connections the store's server allows, and how many are
// open at the end, that server. Waits for a row's lock are those that a MariaDB or
// MySQL adds up when they end. PostgreSQL only shows who waits now (pg_stat_activity),
// so it is asked ten times a second, and each answer stands for the time since the one
// before. That is an estimate: of waits that are shorter than a tenth of a second, and
// so independent, an average of w from n looks is off by about √(w/n): 0.1 on average
// over ten seconds by 0.03. An interval of less than a second has too few looks. Both
// count all databases of the server; PostgreSQL only the sessions that the probe's user
// may look at, which its own are.
//
// What SQL servers do not count: PostgreSQL the bytes and the statements of its
// clients. Its sessions tell of their syncs late (measured: once a second while
// they are busy, ten seconds after they fell idle), so that what was not told of
// yet is made up for by the position of the log, which is known at once. Its
// syncs are those of the log; MariaDB's are all that it makes, which agreed to
// within one with those that strace saw.
//
// What it guarantees:
//
//   - A number that could not be had is nil and its reason is in
//     [Usage].Failures. A counter that went backwards, or a server that is not
//     the one it was, counts as not had.
//   - What the probe does itself is either not in the interval (/metrics, which
//     may cost an app server milliseconds, is read before and after it, and in it
//     once in five seconds, which is 0.03 µs per saga at 10,000 a second), or
//     subtracted (the bytes of INFO), or negligible: an INFO with all that is
//     needed costs a Redis 7 about 35 to 55 µs of CPU and is asked for twice, the
//     one for the timeline 20 µs once a second. In a run of 100,000 sagas that is
//     0.003 µs per saga. A look at an SQL server costs it 0.5 to 0.7 ms, at either
//     end and not in the interval of its CPU; its bytes and statements are
//     subtracted. The looks at who waits on a PostgreSQL cost it 0.05 ms each when
//     made at a stretch and up to 0.26 ms one at a time, so at most 0.3% of a core.
//
// It does not judge what it finds.
package probe
