// Package saga runs sagas: distributed transactions made of steps, each with an
// action that does it and a compensation that undoes it. Either all actions
// succeed, or those that may have begun are undone in reverse order.
//
// # The state machine
//
// [Decide] is the whole of it, a pure function of what a saga is (its [Plan]), how
// it stands (its [State]) and what has just happened ([Event]). An arrow is one
// durable write.
//
//	                 create
//	                   │
//	                   ▼
//	             ┌───────────┐  an action succeeded: mark it,
//	 put off ◄───│ submitted │─┐ then call those that waited for it
//	 (due later) └───────────┘◄┘
//	               │       │
//	 refused, out  │       │ the last action succeeded
//	 of time or    ▼       ▼
//	 on demand ┌──────────┐ ┌─────────┐
//	 ┌────────►│ aborting │ │ succeed │
//	 │         └──────────┘ └─────────┘
//	 │           │      │ the last compensation succeeded
//	 └───────────┘      ▼
//	a compensation  ┌────────┐
//	succeeded, or   │ failed │
//	put off         └────────┘
//
// An action is open when every action that it waits for has succeeded: the one
// before it, or, of a concurrent saga, those that its step names. Only an open
// action is called, so only an open one can have been.
//
//	status    | event                          | written               | then
//	----------+--------------------------------+-----------------------+---------------------------------
//	submitted | taken up                       | –                     | call the open actions
//	submitted | an action succeeded            | its mark              | call those that it opens
//	submitted | the last action succeeded      | its mark, succeed     | ended
//	submitted | an action was refused          | its mark, aborting    | compensate
//	submitted | no answer, beyond the limit;   | aborting              | compensate
//	          | out of time; abort is demanded |                       |
//	aborting  | taken up                       | –                     | compensate
//	aborting  | an action ended, however       | –                     | compensate
//	aborting  | a compensation succeeded       | its mark              | compensate
//	aborting  | the last of them succeeded     | its mark, failed      | ended
//	either    | a branch is undecided          | –                     | hold it for the retry interval
//	either    | no answer; a compensation was  | –                     | hold it for longer and longer
//	          | refused                        |                       |
//	either    | nothing is under way, all that | due, holds, reason    | put off
//	          | is left is held                |                       |
//	any       | a branch not under way answers | –                     | unchanged
//
// To compensate is to call the compensation of each open action that is not under
// way any more, once the compensations of all open actions that waited for it have
// succeeded. An action that was refused is compensated too, like one whose answer
// never came: only the participant knows how far it got. Answers of actions that
// come together with the abort or after it are not marked: a mark would open what
// was never called.
//
// The mark of the last branch travels with the end of the saga, so a saga of n
// steps that goes well one after another is n+1 writes. Several events may be
// decided on, and written, at once.
//
// A held branch is called again when the saga is next taken up, not before: a saga
// that waits is in the store and nowhere else. Pauses double from the retry
// interval to a limit, plus up to half as much, so that sagas held up together do not
// come back together. Compensations are tried for ever.
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
//     A call is only begun when it must end before the lease does. A process that
//     is stopped between its last look at the clock and the request may still send
//     it when it is continued, long after: participants need the barrier for that
//     (package barrier). A clock that stops while the whole machine is suspended,
//     as Linux' monotonic one does, makes a lease look longer than it is; the
//     barrier is for that, too.
//   - An action is not compensated while it may be at work. Without an answer it
//     may be until the deadline of its call, whoever takes the saga over and
//     whether or not its connection was cut. What was never sent is not at work.
//   - Once a coordinator knows that a saga is aborting it calls no action of it
//     any more, whatever the store says later: what the store has lost it writes
//     again.
//   - A branch may be called more than once, after a crash or a lost answer; at
//     most one call per crash and branch under way. Participants must be
//     idempotent.
//   - Whoever asks for it may abort a saga, end its pause or stop it by force
//     through any coordinator of the store ([Coordinator.Abort]): the demand is
//     written to the store, and who runs the saga finds it there with its next
//     write, or is told at once if it runs in the same process.
//
// # What it leaves to others
//
// Batching is package groupcommit's, durability the store's. HTTP is known here
// only as the way in which [HTTPCaller] calls branches.
package saga
