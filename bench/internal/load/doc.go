// Package load drives servers with saga requests and measures what a client
// sees.
//
// The requests are vegeta's: its attack sends them over net/http and stamps
// them. Around it this package adds what a verdict needs:
//
//   - A closed loop keeps a fixed number of requests in flight. An open loop
//     sends at a rate, whatever the answers do: one rate, steps or a ramp, evenly
//     spaced or as a Poisson process. When a request was due is known from the
//     schedule, so that time spent waiting for a free worker counts as latency.
//     Both the latency from the due time and the service time from the send are
//     recorded.
//   - A request that leaves late is the load generator's doing, unless as many as
//     allowed were in flight; the two are counted apart.
//   - A saga that was rolled back because it was asked to fail is an outcome, no
//     error. What is an error is counted by kind.
//   - Each acknowledged saga, with the outcome that was told, is in a file for
//     the audit of the store.
//   - The warm-up is sent the same way, over the same connections, at the rate with
//     which the measured part begins, and leaves nothing behind but its acknowledged
//     sagas.
//   - An interrupted run ends within seconds and still has its result.
//
// The load generator shares its machine with what it measures more often than
// not, so its own cost matters: BenchmarkRun measures it. Against a trivial
// server in another process, both on two cores, a request of a closed loop costs
// it 30 to 37 µs of CPU, as it does vegeta alone; most of that is net/http and
// the kernel. An open loop below the machine's capacity costs more, about 60 µs
// at 5,000/s and 120 to 150 µs at 1,000/s, since threads go to sleep and are
// woken between requests.
//
// All results are taken by one goroutine, which counts and records each in about
// 0.1 µs (BenchmarkMeter): no percentile is ever put together from others.
//
// What the run cost the other processes is package probe's affair, the verdict
// and the files that follow from these are package report's.
package load
