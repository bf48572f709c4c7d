// Package server runs a saga coordinator behind HTTP: alone, or as the bench server of an
// app host.
//
//	     /api/dtmsvr/…       dtm's HTTP API, see package httpapi
//	GET  /ui                 a page for operators, see package webui; / redirects to it
//	GET  /metrics            for Prometheus; also as /api/metrics, as dtm has it
//	GET  /livez              whether the process answers; also as /api/ping
//	GET  /readyz             whether requests may be sent here: the store answers, and the
//	                         server was not told to stop; also as /healthz
//	GET  /debug/pprof/…      profiles, with Config.Pprof
//
// and with Config.Bench:
//
//	GET|POST /bench/saga     makes one saga, waits for its end
//	GET|POST /bench/branch/… the branches of those sagas with branches=http
//
// # /bench/saga
//
// The query parameters steps, branches, payload and fail are those of [Scenario], with
// defaults from Config.Scenario. A body is ignored. Every request makes a saga with a new
// gid. Responses:
//
//	200 {"dtm_result":"SUCCESS","gid":"…"}                 it succeeded
//	409 {"dtm_result":"FAILURE","gid":"…","message":"…"}   it failed, and was compensated
//	400 {"message":"…"}                                    a parameter is wrong; nothing was written
//	503 {"message":"…"}, Retry-After                       too many sagas are in progress; nothing was written
//	503 {"gid":"…","message":"…"}                          the store does not answer, or the saga did not
//	                                                       end in time: it may end later, or not exist
//
// # What it guarantees
//
//   - With Config.Tokens, every request except probes must show one, as Authorization:
//     Bearer TOKEN. The page has a login instead. Branch endpoints take a key derived from
//     a token (see [BranchesOf]).
//   - With Config.TLS it speaks TLS. With a CA every request except probes needs a client
//     certificate signed by it.
//   - Without either, only this machine reaches the server, and pages of other sites in a
//     browser there do not.
//   - Stopping a saga by force and reading profiles take one of Config.AdminTokens.
//   - The log has an audit line for each request that changed a saga or was refused, and
//     with Config.AuditSubmits for accepted submits. Lines about refusals are limited.
//   - Slow clients are cut off. Connections are limited, altogether and for each client.
//     Idle ones make room for others. Probes are answered at the limit, too.
//   - Told to stop, it is not ready, and serves all requests for Config.Drain. Then it
//     refuses new sagas, and answers queries and requests in progress. Other coordinators
//     may claim what has not ended within Config.Grace.
//   - Every response except those of /ui, /metrics and /debug/pprof is JSON, also that of
//     a panic.
//
// # What it leaves to others
//
// The caller opens and closes the store. Sagas made with branches=http hold this server's
// address, so after a restart it must listen on the same port, or their calls fail. Load
// comes from package load, or from vegeta: see [VegetaCommand].
package server
