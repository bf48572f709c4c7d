package server

import (
	"encoding/json"
	"net/http"
)

// Values of dtm_result, for a saga that has ended and for a branch.
const (
	resultSuccess = "SUCCESS"
	resultFailure = "FAILURE"
)

// reply is the JSON of a response.
type reply struct {
	Result  string `json:"dtm_result,omitempty"`
	GID     string `json:"gid,omitempty"`
	Message string `json:"message"`
}

func respond(w http.ResponseWriter, status int, r reply) {
	body, err := json.Marshal(r)
	if err != nil { // impossible: strings always encode
		panic(err)
	}
	write(w, status, body)
}

// busy refuses a request that changed nothing and may be repeated.
func busy(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	respond(w, http.StatusServiceUnavailable, reply{Message: why})
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone
}

func notFound(w http.ResponseWriter, r *http.Request) {
	respond(w, http.StatusNotFound, reply{Message: "there is nothing at " + r.Method + " " + r.URL.Path})
}
