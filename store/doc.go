// Package store is the contract between the saga coordinator and the engines
// that keep its sagas: what is kept, how it changes, and what is guaranteed.
// It holds no engine; those are the packages below it.
//
// # What is kept
//
// One [Record] per saga: its body and a note (both opaque here), its [Status],
// one [Mark] per branch, its owner, the owner's epoch and the time at which it is
// next due. Step i has two branches, its action and its compensation ([Action],
// [Compensation]).
//
//	            Create
//	              │
//	              ▼
//	┌───────► submitted ───────────► succeeded ──┐
//	│  mark,      │                              │  kept for the store's
//	└─ due        │ an action was refused        │  retention, then gone
//	              ▼                              │
//	┌───────► aborting ────────────► failed ─────┘
//	└─ mark, due
//
// # Who runs a saga
//
// Whoever created or last claimed it: that is its Owner, who may be running it
// until Due, which then is the end of a lease. A [Transition] with Release gives
// the lease up: the Owner is empty, nobody runs the saga, and it was put off until
// Due, or handed back if that is at once. A claim makes no difference between the
// two; once Due has passed, either may be claimed.
//
// Release gives up the lease and not the epoch. Until somebody claims the saga
// whoever released it can still change it, and the Owner stays empty.
//
// # What every store guarantees
//
//   - Atomic: a change is applied whole or not at all.
//   - Durable: when its error is nil the change survives whatever the store's
//     [Durability] class says it survives. With D3 or above, the same is true of
//     what a reader is shown, and of what a refusal rests on.
//   - Fenced: a [Transition] is refused with [ErrConflict] unless the saga has
//     exactly the epoch and the status that the transition expects. ClaimDue
//     raises the epoch, so whoever held the saga before can write no more.
//   - Forward only: statuses follow the picture above; a mark, once set, is
//     never changed. Writing the same mark again is allowed, so that a call
//     whose answer was lost may be repeated.
//   - Kept: an unfinished saga is never dropped. A finished one is, after the
//     retention its store was opened with; with none, at once.
//   - One clock: due times are set and compared by the store's own clock. A
//     coordinator whose clock is wrong claims nothing early.
//
// # What is left to others
//
// Batching concurrent callers is package groupcommit's, deciding what to write
// is package saga's. A store does not retry: an error that is none of this
// package's says nothing about the outcome (the reply may have been lost after
// the write), and whoever gets it looks with Get before writing again.
package store
