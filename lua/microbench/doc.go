// Package microbench prices the scripts of package lua on a Redis: what a call
// costs the server, why, and how many sagas a second that leaves one core.
//
// # What is measured
//
// A probe is one kind of call: a script at one shape of its sagas (see [Shape]), a
// script with a part left out, or something to compare with: a plain command, a
// script of one SET, the classic pattern of JSON records. In a window of some
// milliseconds a probe's calls, all encoded before, are sent over some connections;
// the server's own CPU time (INFO, in µs) before and after gives the price. A round
// measures every probe once, every other round in the inverted order, and a figure
// is the median of the rounds with an interval that holds it.
//
// Each window has new sagas, which are put there before and removed after it, on a
// server that holds finished sagas and due indexes like one in production. Every
// answer is read, and one that says that not all was done makes the probe fail.
//
// # What it guarantees
//
//   - The calls are those that the Redis store makes; tests compare them.
//   - Nothing is touched but keys of a prefix of its own, which are removed one by
//     one by [Bench.Close], and a function library where [Config].Functions allows
//     one. No setting is changed, nothing is flushed. The server keeps a copy of
//     the scripts until it is restarted. If the process is killed, what is large
//     expires within the hour.
//   - What the server refuses (CONFIG, a command that a user may not use) is left
//     out and named in [Result].NotMeasured.
//
// # What it leaves to others
//
// Starting servers, and running sagas through the whole system to be compared with
// ([Bench.Agree] prices the calls of such a run). The server should have no other
// load, for its whole CPU is counted: bytes from others are noticed and said.
package microbench
