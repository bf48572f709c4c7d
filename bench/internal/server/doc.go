// Package server is a saga coordinator behind HTTP, in one process, as an
// application would embed it: alone, or as the bench server of an app host.
//
//	     /api/dtmsvr/…       dtm's HTTP API, see package httpapi
//	GET  /ui                 a page for people, see package webui; / leads to it
//	GET  /metrics            for Prometheus; also as /api/metrics, as dtm has it
//	GET  /livez              whether the process answers
//	GET  /readyz             whether requests may be sent here: the store answers, and
//	                         the server was not told to stop; also as /healthz
//	     /api/ping           whether the process does
//	GET  /debug/pprof/…      profiles, when Config.Pprof is set
//
// and with Config.Bench:
//
//	GET|POST /bench/saga     makes one saga, waits for its end
//	GET|POST /bench/branch/… what those sagas call with branches=http
//
// # /bench/saga
//
// The query parameters steps, branches, payload and fail are those of
// [Scenario]; what is left out comes from Config.Scenario. A body is ignored.
// Every request is a saga of its own, with a fresh gid. The answers:
//
//	200 {"dtm_result":"SUCCESS","gid":"…"}                 it succeeded
//	409 {"dtm_result":"FAILURE","gid":"…","message":"…"}   it failed, and was compensated
//	400 {"message":"…"}                                    a parameter is wrong; nothing was written
//	503 {"message":"…"}, Retry-After                       too many sagas are under way; nothing was written
//	503 {"gid":"…","message":"…"}                          the store is away, or the saga did not
//	                                                       end in time: it may end later, or not exist
//
// # What it guarantees
//
//   - With Config.Tokens, nothing but the probes and /api/ping answers a request
//     that does not show one, as Authorization: Bearer TOKEN; the page has people
//     log in with one, and the branch endpoints take a key made of one (see
//     [BranchesOf]).
//   - With Config.TLS it speaks TLS, and with a CA in it lets in only who shows a
//     certificate, but for the same two.
//   - Without either the server is reached from its own machine only, and not by
//     pages of other sites in a browser there.
//   - Sagas are stopped by force, and profiles given, with one of Config.AdminTokens
//     only, or not at all.
//   - The log has a line for each request that changed a saga or was refused, but for
//     submits that were taken, unless Config.AuditSubmits asks for them. A flood of
//     refusals is counted.
//   - Slow clients are cut off, and the connections bounded, altogether and of one
//     client. Idle ones make room for others, and probes are answered even when all
//     are in use.
//   - Told to stop, it is not ready any more and goes on for Config.Drain. Then it
//     refuses new sagas, and answers queries and the requests under way; what has not
//     ended within Config.Grace is let go, for others to take over.
//   - Every answer but those of /ui, /metrics and /debug/pprof is JSON, a
//     panic's too.
//
// # What it leaves to others
//
// The store is opened and closed by the caller. Sagas made with branches=http hold
// this server's address: one that is restarted must listen on the same port, or those
// it left are called in vain. Load comes from package load, or from vegeta as
// [VegetaCommand] says.
package server
