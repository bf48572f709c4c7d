// Package server is the bench server of an app host: a saga coordinator behind
// gin, in one process, as an application would embed it.
//
//	GET|POST /bench/saga         makes one saga, waits for its end
//	GET|POST /bench/branch/…     what those sagas call with branches=http
//	GET      /healthz            whether the store answers
//	GET      /metrics            for Prometheus
//	GET      /debug/pprof/…      profiles, when Config.Pprof is set
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
//	503 {"gid":"…","message":"…"}                          the store is away, or the saga did not
//	                                                       end in time: it may end later, or not exist
//
// # What it guarantees
//
//   - Without Config.Public it is reached from its own machine only. There is no
//     authentication yet: whoever reaches it may use all of it.
//   - Told to stop, it refuses new sagas and answers the requests under way; what
//     has not ended within Config.Grace is let go, for others to take over.
//   - Every answer but those of /metrics and /debug/pprof is JSON, a panic's too.
//
// # What it leaves to others
//
// The store is opened and closed by the caller. Sagas made with branches=http
// hold this server's address: one that is restarted must listen on the same port,
// or those it left are called in vain. Load comes from package load, or
// from vegeta as [VegetaCommand] says.
package server
