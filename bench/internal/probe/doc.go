// Package probe measures what a run costs: the CPU of the load generator, of
// the app servers and of the store, and the store's bytes, calls, memory, round
// trips and fsyncs. It looks at the beginning and at the end of the measured
// part and gives the difference.
//
// Where the numbers come from:
//
//	load   getrusage of this process, to the microsecond
//	app    its process where it runs here (the kernel's clock ticks, 10 ms), its
//	       /metrics elsewhere and for what the store's client counts
//	store  INFO of a Redis, local or remote; the process of any other server
//	host   the kernel's CPU times of this machine
//
// What it guarantees:
//
//   - A number that could not be had is nil and its reason is in
//     [Usage].Failures. A counter that went backwards, or a server that is not
//     the one it was, counts as not had.
//   - What the probe does itself is either not in the interval (/metrics, which
//     may cost an app server milliseconds, is read before and after it), or
//     subtracted (the bytes of INFO), or negligible: an INFO with all that is
//     needed costs a Redis 7 about 35 to 55 µs of CPU and is asked for twice, the
//     one for the timeline 20 µs once a second. In a run of 100,000 sagas that is
//     0.003 µs per saga.
//
// It does not judge what it finds.
package probe
