// Package saga runs sagas: distributed transactions made of steps, each with an action
// and a compensation that undoes it. Either all actions succeed, or the actions that may
// have begun are undone in reverse order.
//
// Package machine decides what a saga does next. [Coordinator] owns time, the store and
// the calls. It promises:
//
//   - Once Submit has returned nil, the saga ends, whatever crashes, as long as
//     some coordinator runs on the same store.
//   - A change is durable before anything that depends on it is called.
//   - A saga belongs to one coordinator at a time. A takeover raises its epoch, and the
//     store refuses the former owner's writes from then on. A call begins only if it must
//     end before the lease does. A process that is stopped between reading the clock and
//     sending the request may still send it when it is continued, long after.
//     Participants need the barrier for that (package barrier). They also need it where
//     the whole machine may be suspended: Linux' monotonic clock stops then, and a lease
//     looks longer than it is.
//   - An action is not compensated while it may be at work. Without an answer it may be
//     until the deadline of its call, even if its connection was cut or another
//     coordinator has taken the saga over. A call that was never sent is not at work.
//   - Once a coordinator knows that a saga is aborting, it calls no action of it any more,
//     whatever the store says later: it writes again what the store has lost.
//   - A branch may be called more than once, after a crash or a lost answer; at most one
//     call per crash and branch under way. Participants must be idempotent.
//   - Any coordinator of the store can abort a saga, end its pause or stop it by force
//     ([Coordinator.Abort]). Such a control command is written to the store. The
//     coordinator that runs the saga finds it with its next write, or at once if it is
//     the same one.
//
// Package groupcommit batches the writes, and the store makes them durable. Package branch
// calls branches over HTTP or as Go functions; another [Caller] may call them otherwise.
package saga
