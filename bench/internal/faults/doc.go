// Package faults has only tests: two coordinator processes, a store server, and
// participants that succeed, refuse, hang and close connections by a seeded plan, so that
// the correct end of each saga is known. While clients submit sagas, one fault occurs: a
// coordinator is killed or stopped, a host disconnects silently, the store is killed, or
// its disk is slow; of a Redis Cluster, 2,000 slots move, or a master is lost, or cut off from
// the other nodes. Every acknowledged saga must then have ended once, as planned and in time.
//
// After the loss of a master, submits must succeed again within the time that the settings
// promise. At D3 the replica may lack what its master acknowledged at the moment of the loss,
// or while it was cut off: only sagas of that master that were under way then may be lost or
// go back. At D4 none may.
//
// The evidence is recorded outside the processes under test: the answers to clients, the
// calls of participants, the statuses that reads showed, and the final content of the
// store.
//
// To add a fault, add an entry to the table all, or to ofNodes and atD4 for a Redis Cluster.
// The suite runs each fault once on each store; make faults runs many rounds.
package faults
