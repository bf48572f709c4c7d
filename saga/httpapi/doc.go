// Package httpapi is dtm's HTTP API for sagas, over a coordinator: programs that
// drive dtm's sagas through one of dtm's clients drive this one unchanged.
//
//	GET  /api/dtmsvr/newGid             a unique gid
//	GET  /api/dtmsvr/version            the server's version
//	POST /api/dtmsvr/submit             creates a saga; with wait_result, responds when it has ended
//	POST /api/dtmsvr/abort              aborts a saga
//	POST /api/dtmsvr/forceStop          ends a saga as failed without compensation; for the admin
//	POST /api/dtmsvr/resetNextCronTime  retries a deferred saga now
//	GET  /api/dtmsvr/resetCronTime      retries many deferred sagas now
//	GET  /api/dtmsvr/query              one saga and its branches
//	GET  /api/dtmsvr/all                pages of sagas
//	POST /api/dtmsvr/prepare            refused: sagas are submitted
//	     /api/ping                      whether the process answers, by any method
//
// Responses:
//
//	200 {"dtm_result":"SUCCESS"}                   done; reads have fields of their own
//	400 {"message":…}                              the request is wrong; nothing was written
//	403 {"message":…}                              only the admin may do this
//	404 {"message":…}                              no such saga
//	409 {"dtm_result":"FAILURE","message":…}       the saga failed, has ended, or another saga has the gid
//	413 {"message":…}                              the body is too large
//	425 {"dtm_result":"ONGOING","message":…}       the saga continues; the wait for its end is over
//	500 {"message":…}                              the store does not answer: the outcome is unknown
//	503 {"message":…}, Retry-After                 too much is under way; nothing was written
//
// # What it guarantees
//
//   - A submit with response 200 is durable. Submitting the same saga again returns 200
//     as well; with wait_result, its outcome. Another saga with the same gid gets 409,
//     and none of its branches is called.
//   - Fields that dtm ignores are ignored: unknown ones, and the top-level concurrent.
//     Values that make dtm fail get 400, which names the field.
//   - A body is read up to [MaxBodyBytes]. Decoding takes little more memory than its
//     size, for any content. The large bodies in memory together are bounded.
//
// # What it leaves to others
//
// The server that registers it authenticates clients and sets the timeouts of
// connections; only forceStop calls [Config.Admin]. The cause of a 500 goes to
// [Config.Failed]. The response leaves it out, since it holds the store's address. Package
// saga checks sagas, their limits and the addresses of branches.
package httpapi
