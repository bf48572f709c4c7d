package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/store"
)

// Kinds of errors, besides "http 500" and the like. They must not change: results are
// compared by them.
const (
	kindRefused     = "connection refused"
	kindReset       = "connection reset"
	kindClosed      = "connection closed"
	kindTimeout     = "timeout"
	kindUnreachable = "host unreachable"
	kindNoHost      = "no such host"
	kindFiles       = "too many open files"
	kindNoPort      = "no local port left"
	kindTLS         = "TLS"
	kindInterrupted = "interrupted"
	kindBadHTTP     = "malformed HTTP"
	kindNoResult    = "answer without a saga's result"
	kindOther       = "other"
)

// classify returns the outcome and gid of an acknowledged saga, or the kind of the error.
// Status 200 alone is no success: the body must say so. If no gid was submitted, the
// answer must have a valid one.
func classify(r *vegeta.Result, submitted string) (outcome store.Status, gid, kind string) {
	if r.Code == 0 {
		return 0, "", transportKind(r.Error)
	}
	var answer struct {
		Result string `json:"dtm_result"`
		GID    string `json:"gid"`
	}
	said := json.Unmarshal(r.Body, &answer) == nil
	gid = submitted
	if gid == "" {
		gid = answer.GID
		said = said && store.CheckGID(gid) == nil
	}
	switch {
	case said && r.Code == http.StatusOK && answer.Result == "SUCCESS":
		return store.StatusSucceeded, gid, ""
	case said && r.Code == http.StatusConflict && answer.Result == "FAILURE":
		return store.StatusFailed, gid, ""
	case r.Code == http.StatusOK:
		return 0, "", kindNoResult
	default:
		return 0, "", fmt.Sprintf("http %d", r.Code)
	}
}

// transportKind returns the kind in the text of an error of transport, to which
// http.Client has added method and URL.
func transportKind(text string) string {
	_, failure, _ := strings.Cut(text, kindMark)
	kind, _, _ := strings.Cut(failure, ":")
	return cmp.Or(kind, kindOther)
}
