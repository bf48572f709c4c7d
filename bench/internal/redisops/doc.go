// Package redisops measures single operations of a Redis or a Redis Cluster through Go
// clients, and through redis-benchmark as the reference: rate, latency, CPU on both sides,
// allocations, round trips and bytes on the wire.
//
// # Method
//
// Each of [Config.Clients] goroutines sends requests in a closed loop: the next one when all
// replies of the last one are there. After the warm-up all of them stop. Then the counters
// are read, all run for [Config.Duration] and end their last request, and the counters are
// read again. So the counters are of exactly the operations that were counted.
//
//   - A request is KeysPerRequest × Pipeline commands. Its latency is from before the first
//     command is sent until the last reply is there. It is that of one operation only if the
//     request has one.
//   - CPU, allocations, round trips and bytes are per operation, which is one command.
//   - A round trip is one or more writes to a connection, followed by data from it. On a
//     connection that many callers share, their commands are one round trip together.
//   - Every reply is checked. One that is not as expected is an error.
//
// All clients speak RESP2, which Redis 5 knows, send no client name, and do not retry. Other
// settings are their own defaults, except that a connection per call needs as many connections
// as there are callers. Calls have a context that cannot be cancelled: with another one,
// rueidis runs two goroutines for each connection of its pool.
//
// # Limits
//
// The CPU of the client is that of this process, so nothing else should run in it. It has
// some 0.3 µs of the measurement itself per operation (BenchmarkLoop). The server's CPU is all that it used
// meanwhile, so it should have no other load. redis-benchmark connects within what is
// measured: with many connections and a short duration its rate is a little low, and its CPU
// and that of the server a little high.
package redisops
