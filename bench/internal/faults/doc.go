// Package faults holds no code but tests: two coordinator processes and a store
// server, with participants that succeed, refuse, hang and cut the connection by a
// seeded plan, so that the right end of each saga is known. While clients submit
// sagas, one thing breaks: a coordinator is killed or stopped, a host vanishes from
// the network without a word, the store is killed, its disk is slow. Afterwards every
// acknowledged saga must have ended, once, as its plan says, and in time.
//
// What is seen is written down outside the processes under test: what clients were
// told, what participants were asked to do, what reads showed meanwhile, and what the
// store holds at the end.
//
// The suite runs each fault once on each store. make faults runs many rounds.
package faults
