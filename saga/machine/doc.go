// Package machine is the state machine of a saga, as a pure function. [Decide] maps the
// unchanging part of a saga (its [Plan]), its [State] and the latest events ([Event]) to
// what must be written and called next. It knows neither time nor stores nor HTTP.
//
// An arrow of the diagram is one durable write.
//
//	                 create
//	                   │
//	                   ▼
//	             ┌───────────┐  an action succeeded: mark it,
//	deferred ◄───│ submitted │─┐ then call the actions that waited for it
//	(due later)  └───────────┘◄┘
//	               │       │
//	 refused, out  │       │ the last action succeeded
//	 of time or    ▼       ▼
//	 on command ┌──────────┐ ┌─────────┐
//	 ┌─────────►│ aborting │ │ succeed │
//	 │          └──────────┘ └─────────┘
//	 │            │      │ the last compensation succeeded
//	 └────────────┘      ▼
//	a compensation   ┌────────┐
//	succeeded, or    │ failed │
//	deferred         └────────┘
//
// An action is open when every action that it waits for has succeeded: the previous one,
// or in a concurrent saga the ones that its step names. Only open actions are called.
//
//	status    | event                          | written               | then
//	----------+--------------------------------+-----------------------+---------------------------------
//	submitted | resumed                        | –                     | call the open actions
//	submitted | an action succeeded            | its mark              | call the actions that it opens
//	submitted | the last action succeeded      | its mark, succeed     | ended
//	submitted | an action was refused          | its mark, aborting    | compensate
//	submitted | no answer, beyond the retry    | aborting              | compensate
//	          | limit; timeout; abort command  |                       |
//	aborting  | resumed                        | –                     | compensate
//	aborting  | an action ended, in any way    | –                     | compensate
//	aborting  | a compensation succeeded       | its mark              | compensate
//	aborting  | the last of them succeeded     | its mark, failed      | ended
//	either    | a branch is undecided          | –                     | retry after the retry interval
//	either    | no answer; a compensation was  | –                     | retry after longer and longer pauses
//	          | refused                        |                       |
//	either    | nothing is under way, and only | due, retries, reason  | deferred
//	          | retries are left               |                       |
//	any       | a branch not under way answers | –                     | unchanged
//
// To compensate is to call the compensations of open actions that have ended. Each waits
// for the compensations of the open actions that waited for its own. A refused action is
// compensated too, like an action whose answer never came: only the participant knows how
// far it got. An action that succeeds together with the abort, or after it, is not marked:
// the mark would open actions that were never called.
//
// The mark of the last branch is written together with the end of the saga. A sequential
// saga of n steps that succeeds takes n+1 writes. One write can cover several events.
//
// A retry happens when the saga is resumed after its pause: a deferred saga is in the
// store and nowhere else. Pauses double from the retry interval to a maximum, and each is
// lengthened by up to a half, so that sagas deferred together are not resumed together.
// Compensations are retried for ever.
package machine
