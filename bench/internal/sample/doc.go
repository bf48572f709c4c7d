// Package sample measures what a load costs: the CPU of the load generator, of the app
// servers and of the store, and the store's bytes, calls, memory, round trips and fsyncs.
// It also measures how busy the machine and its network were, and how long callers waited
// for the store. It reads counters at the beginning and at the end of the measured part
// and returns the differences.
//
// Sources:
//
//	load   getrusage of this process, to the microsecond
//	app    its process if it runs here (the kernel's clock ticks, 10 ms), its /metrics
//	       elsewhere and for what the store's client counts
//	store  a [Store]: see package backend; what an embedded one wrote to disk, and what it
//	       put off, from the app's /metrics; its device from the kernel's block statistics
//	host   the kernel's CPU times of this machine, and the counters of its network
//	       interfaces that lead to other machines
//
// The app servers report how long calls of the store took, how long they waited for a
// connection, and for how long clients were refused.
//
// Guarantees:
//
//   - A figure that could not be measured is nil, and [Usage].Failures has the reason.
//     That includes counters that went backwards, and servers that were replaced.
//   - The sampler's own work is not in the interval (/metrics, which may cost an app
//     server milliseconds, is read before and after it, and once in five seconds during
//     it: 0.03 µs per saga at 10,000 a second), or subtracted (bytes and calls of the
//     store's server), or negligible. All that is needed of a Redis 7 costs it 35 to 55 µs
//     of CPU, twice; for the timeline it is 20 µs once a second. An SQL server spends 0.5
//     to 0.7 ms at either end, outside of the interval of its CPU.
//
// It does not judge what it finds.
package sample
