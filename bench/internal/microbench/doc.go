// Package microbench measures what the scripts of package lua cost a Redis server:
// the CPU of a call, its causes, and how many sagas a second one core can carry.
//
// # Method
//
// docs/lua.md describes it. A case is one kind of call: a script at one [Shape] of its
// sagas, a script with a part left out, PING, or a script of the baseline. Each window
// has new sagas, which are created before and removed after it. A reply that shows that
// not everything was done fails the case.
//
// # Guarantees
//
//   - The calls are those of the Redis store; a test compares them.
//   - Only keys under a random prefix are written, and all are removed one by one.
//     No setting is changed. The server keeps a copy of the scripts until it is
//     restarted. If the process is killed, finished sagas and due indexes expire
//     within the hour.
//   - What the server refuses, such as a command that the user may not run, is left
//     out and listed in [Result].NotMeasured.
//
// # Limits
//
// The whole CPU of the server is counted, so it should have no other load.
package microbench
