// Package faults has only tests: two coordinator processes, a store server, and
// participants that succeed, refuse, hang and close connections by a seeded plan, so that
// the correct end of each saga is known. While clients submit sagas, one fault occurs: a
// coordinator is killed or stopped, a host disconnects silently, the store is killed, or
// its disk is slow; of a Redis Cluster, slots move, or a master is lost. Every acknowledged
// saga must then have ended once, as planned and in time. A failover may lose some, and the
// rest must have ended.
//
// The evidence is recorded outside the processes under test: the answers to clients, the
// calls of participants, the statuses that reads showed, and the final content of the
// store.
//
// To add a fault, add an entry to the table all. The suite runs each fault once on each
// store; make faults runs many rounds.
package faults
