package server

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"sagabench/internal/secret"
	"sagabench/saga"
)

// Paths of the branch endpoints, and the parameters that they know.
const (
	branchPath         = "/bench/branch/"
	actionPath         = branchPath + "action"
	compensatePath     = branchPath + "compensate"
	refuse             = "refuse=true" // makes one refuse
	branchKeyParameter = "key="
)

// Branches are the URLs of a bench server's branch endpoints: what does a step,
// what refuses to, and what undoes one.
type Branches struct{ Action, Refusing, Compensate string }

// BranchesOf are those of the bench server at base. Sagas are stored, and carried
// out by whoever takes them over, so the server's token is not in them: a key that
// is made of it opens the branch endpoints and nothing else.
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

// branchKey is short, for it is stored with every saga: 128 bits.
func branchKey(token secret.Text) string { return token.Sign("bench branches")[:22] }

// branches are the endpoints that the bench's sagas call: they do nothing but
// count.
type branches struct {
	actions, compensations atomic.Int64
}

func (b *branches) action(c *gin.Context) {
	b.actions.Add(1)
	serveBranch(c)
}

func (b *branches) compensate(c *gin.Context) {
	b.compensations.Add(1)
	serveBranch(c)
}

func serveBranch(c *gin.Context) {
	// Read to its end: the connection could not be used again otherwise.
	n, err := io.Copy(io.Discard, io.LimitReader(c.Request.Body, saga.MaxPayloadBytes+1))
	switch {
	case err != nil:
		answer(c, http.StatusBadRequest, reply{Message: "reading the body: " + err.Error()})
	case n > saga.MaxPayloadBytes:
		answer(c, http.StatusRequestEntityTooLarge, reply{Message: "body: more than 1 MiB"})
	case refused(c.Request.URL.RawQuery):
		answer(c, http.StatusConflict, reply{Result: resultFailure, Message: "refused, as " + refuse + " asks"})
	default:
		write(c, http.StatusOK, []byte(`{"dtm_result":"`+resultSuccess+`"}`))
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
