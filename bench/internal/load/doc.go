// Package load sends saga requests to servers and measures what a client sees.
//
// vegeta sends the requests over net/http and stamps them. Around it, this package adds:
//
//   - A closed loop keeps a fixed number of requests in flight. An open loop sends at a
//     rate, independent of the answers: one rate, steps or a ramp, evenly spaced or as a
//     Poisson process. The schedule says when a request was due, so that waiting for a
//     free worker counts as latency. Both the latency from the due time and the service
//     time from the send are recorded.
//   - The lateness, how long after its due time a request was sent, is recorded of requests
//     that were sent while fewer than MaxInFlight were in flight: it is the load
//     generator's fault. The others are counted as delayed.
//   - A saga that was rolled back because it was asked to fail is an outcome and no
//     error. Errors are counted by kind.
//   - A file lists each acknowledged saga with its outcome, for the audit of the store.
//   - The load goes on from the warm-up, which has the rate with which the measured part
//     begins. Of requests due in the warm-up, only the acknowledged sagas are recorded. A
//     backlog that they leave is measured by the requests that wait behind it.
//   - Each second has its requests above given limits of the latency: errors and requests
//     that were due then and never sent, too.
//   - An interrupted run ends within seconds and has a result.
//
// The load generator often shares its machine with what it measures. On two cores, a
// request of a closed loop costs 30 to 37 µs of CPU (BenchmarkRun), as with vegeta alone.
// One of an open loop below the machine's capacity costs 60 µs at 5,000/s and up to 150 µs
// at 1,000/s, because threads sleep and wake between requests.
//
// One goroutine counts and records all results, in about 0.1 µs each
// (BenchmarkRecorder). So percentiles are never computed from other percentiles.
package load
