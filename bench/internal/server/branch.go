package server

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"sagabench/bench/internal/environment"
	"sagabench/internal/secret"
	"sagabench/saga"
)

// Paths of the branch endpoints, and their parameters.
const (
	branchPath         = "/bench/branch/"
	actionPath         = branchPath + "action"
	compensatePath     = branchPath + "compensate"
	refuse             = "refuse=true" // the branch refuses
	branchKeyParameter = "key="
)

// Branches are the URLs of a bench server's branch endpoints: an action that succeeds, one
// that refuses, and a compensation.
type Branches struct{ Action, Refusing, Compensate string }

// BranchesOf returns the URLs of the bench server at base. Stored sagas hold these URLs, so
// they must not hold the server's token. They hold a key derived from it, which opens the
// branch endpoints only.
func BranchesOf(base string, token secret.Text) Branches {
	query := ""
	if token.IsSet() {
		query = branchKeyParameter + branchKey(token)
	}
	with := func(path string, parameters ...string) string {
		all := strings.Join(append(parameters, query), "&")
		if all = strings.Trim(all, "&"); all == "" {
			return base + path
		}
		return base + path + "?" + all
	}
	return Branches{with(actionPath), with(actionPath, refuse), with(compensatePath)}
}

// branchKey returns 128 bits: short, since every saga stores it.
func branchKey(token secret.Text) string { return token.Sign("bench branches")[:22] }

// branches are the endpoints that the bench's sagas call. They only count calls.
type branches struct {
	actions, compensations atomic.Int64
}

// HeaderMachine has the boot id of the client's machine. A branch that succeeds on the same
// machine repeats it, so that a load generator knows.
const HeaderMachine = "Sagabench-Machine"

func (b *branches) action(w http.ResponseWriter, r *http.Request) {
	b.actions.Add(1)
	if id := r.Header.Get(HeaderMachine); id != "" && id == environment.BootID() {
		w.Header().Set(HeaderMachine, id)
	}
	serveBranch(w, r)
}

func (b *branches) compensate(w http.ResponseWriter, r *http.Request) {
	b.compensations.Add(1)
	serveBranch(w, r)
}

func serveBranch(w http.ResponseWriter, r *http.Request) {
	// Read to the end, so that the connection can be used again.
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, saga.MaxPayloadBytes+1))
	switch {
	case err != nil:
		respond(w, http.StatusBadRequest, reply{Message: "reading the body: " + err.Error()})
	case n > saga.MaxPayloadBytes:
		respond(w, http.StatusRequestEntityTooLarge, reply{Message: "body: more than 1 MiB"})
	case refused(r.URL.RawQuery):
		respond(w, http.StatusConflict, reply{Result: resultFailure, Message: "refused, as " + refuse + " asks"})
	default:
		write(w, http.StatusOK, []byte(`{"dtm_result":"`+resultSuccess+`"}`))
	}
}

func refused(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		if parameter == refuse {
			return true
		}
	}
	return false
}
