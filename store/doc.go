// Package store is the contract between the saga coordinator and the stores of its
// sagas: the data, its changes, and the guarantees. The stores are in the packages
// below it.
//
// # Data
//
// A store holds one [Record] per saga: a body and a note (both opaque to the store),
// the [Status], one [Mark] per branch, the owner, the owner's epoch and the time at
// which the saga is next due. Step i has two branches: [Action] and [Compensation].
//
//	            Create
//	              │
//	              ▼
//	┌───────► submitted ───────────► succeeded ──┐
//	│  mark,      │                              │  deleted after the
//	└─ due        │ an action was refused        │  store's retention
//	              ▼                              │
//	┌───────► aborting ────────────► failed ─────┘
//	└─ mark, due
//
// # Leases
//
// The Owner of a saga is the coordinator that created or last claimed it. It may run
// the saga until Due, the end of its lease. A [Transition] with Release ends the lease:
// the Owner is empty and nobody runs the saga. Once Due has passed, any coordinator may
// claim a saga, released or not.
//
// Release ends the lease, not the epoch. Until the next claim, the coordinator that
// released the saga can still change it. The Owner stays empty.
//
// # Guarantees
//
//   - Atomic: a change is applied whole or not at all.
//   - Durable: a change whose error is nil survives what the store's [Durability]
//     class promises. With D3 or above, so does everything that a read returns and
//     the state that a refusal depends on.
//   - Fenced: a [Transition] gets [ErrConflict] unless the saga has exactly the epoch
//     and the status that the transition expects. ClaimDue raises the epoch, so the
//     previous owner can write no more.
//   - Forward only: statuses follow the picture above. A mark, once set, never
//     changes. Setting the same mark again is allowed, so that a call whose reply was
//     lost may be repeated.
//   - Retained: an unfinished saga is never deleted. A finished saga is deleted after
//     the retention of its store.
//   - One clock: the store's own clock sets and compares due times. A coordinator whose
//     clock is wrong claims nothing early.
//
// # Not covered
//
// Package groupcommit collects changes into batches, and package saga decides what to
// write. A store does not retry. After an error that is not of this package the outcome
// is unknown, since the reply may have been lost after the write: read the saga before
// you write again.
package store
