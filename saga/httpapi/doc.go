// Package httpapi is dtm's HTTP API for sagas, over a coordinator: programs that
// drive dtm's sagas through one of dtm's clients drive this one unchanged.
//
//	GET  /api/dtmsvr/newGid             a gid nobody else has
//	GET  /api/dtmsvr/version            the server's version
//	POST /api/dtmsvr/submit             makes a saga; with wait_result, answers when it has ended
//	POST /api/dtmsvr/abort              has a saga undone
//	POST /api/dtmsvr/forceStop          gives a saga up as failed, nothing compensated; for the admin
//	POST /api/dtmsvr/resetNextCronTime  ends the pause of one saga
//	GET  /api/dtmsvr/resetCronTime      ends the pauses of many
//	GET  /api/dtmsvr/query              one saga and its branches
//	GET  /api/dtmsvr/all                pages of sagas
//	POST /api/dtmsvr/prepare            refused: sagas are submitted
//	     /api/ping                      whether the process answers, by any method
//
// The answers:
//
//	200 {"dtm_result":"SUCCESS"}                   done; what reads has fields of its own
//	400 {"message":…}                              the request is wrong; nothing was written
//	403 {"message":…}                              only the admin may do this
//	404 {"message":…}                              no such saga
//	409 {"dtm_result":"FAILURE","message":…}       the saga failed, has ended, or the gid is another's
//	413 {"message":…}                              the body is too large
//	425 {"dtm_result":"ONGOING","message":…}       the saga goes on, but its end was not waited for any longer
//	500 {"message":…}                              the store is away: the outcome is unknown
//	503 {"message":…}, Retry-After                 too much is under way; nothing was written
//
// # What it guarantees
//
//   - A submit that is answered with 200 is durable. Submitting the same saga
//     again is answered with 200 as well, whatever became of it; with
//     wait_result, by how it ended. Another saga under its gid gets 409, and none
//     of its branches is called.
//   - What dtm ignores is ignored: fields it does not know, and the top-level
//     concurrent. What dtm trips over is refused with 400, which names the field.
//   - A body is read up to [MaxBodyBytes], and costs little more than its size,
//     whatever is in it. So many large ones are read at a time.
//
// # What it leaves to others
//
// Whoever mounts it decides who may reach it, and sets the timeouts of the
// connections; only forceStop asks who is there. Why a request ended with a 500 is in
// gin's errors (Context.Errors) for the log, and not in the answer: it holds the
// store's address. What sagas mean, their limits
// and the addresses of branches are package saga's.
package httpapi
