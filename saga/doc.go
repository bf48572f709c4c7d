// Package saga runs sagas: distributed transactions made of steps, each with an
// action that does it and a compensation that undoes it. Either all actions
// succeed, or those that may have begun are undone in reverse order.
//
// # The state machine
//
// [Decide] is the whole of it, a pure function of a saga's status and marks and
// of what just happened. An arrow is one durable write.
//
//	                  create
//	                    │
//	                    ▼
//	              ┌───────────┐  action i succeeded: mark it,
//	  put off ◄───│ submitted │─┐ then call action i+1
//	  (due later) └───────────┘◄┘
//	                │       │
//	  action i was  │       │ the last action succeeded
//	  refused: mark │       │
//	                ▼       ▼
//	       ┌──────────┐   ┌─────────┐
//	  ┌───►│ aborting │   │ succeed │
//	  │    └──────────┘   └─────────┘
//	  │      │      │ compensation 0 succeeded
//	  └──────┘      ▼
//	 compensation ┌────────┐
//	 j succeeded, │ failed │
//	 or put off   └────────┘
//
//	status     | event                         | written              | then
//	-----------+-------------------------------+----------------------+------------------
//	submitted  | taken up                      | –                    | call action i, the first unmarked
//	submitted  | action i succeeded, not last  | mark i               | call action i+1
//	submitted  | action i succeeded, last      | mark i, succeed      | ended
//	submitted  | action i refused              | mark i, aborting     | call compensation i
//	submitted  | action i undecided or silent  | due, reason          | put off
//	aborting   | taken up                      | –                    | call compensation j, the last unmarked
//	aborting   | compensation j succeeded      | mark j               | call compensation j-1
//	aborting   | compensation 0 succeeded      | mark 0, failed       | ended
//	aborting   | compensation j: anything else | due, reason          | put off
//	any        | another branch answers        | –                    | unchanged
//
// An action that was refused is compensated too, like one whose answer never
// came: only the participant knows how far it got. The mark of the last branch
// travels with the end of the saga, so a saga of n steps that goes well is n+1
// writes.
//
// # The coordinator
//
// [Coordinator] owns what the machine does not: time, the store and the calls.
// It promises:
//
//   - Once Submit has returned nil, the saga ends, whatever crashes, as long as
//     some coordinator runs on the same store.
//   - A change is durable before anything that depends on it is called.
//   - A saga belongs to one coordinator at a time. Whoever takes it over raises
//     its epoch, and the store refuses the former owner's writes from then on.
//     A call is only begun when it must end before the lease does.
//   - A branch may be called more than once, after a crash or a lost answer; at
//     most one call per saga and crash. Participants must be idempotent.
//
// # What it leaves to others
//
// Batching is package groupcommit's, durability the store's. HTTP is known here
// only as the way in which [HTTPCaller] calls branches.
package saga
