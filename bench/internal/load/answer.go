package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/store"
)

// Kinds of errors besides "http 500" and its like. They are stable: results
// are compared by them.
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

// classify says what an answer means: an acknowledged saga with its outcome and
// gid, or an error of some kind. Only a body that says so makes a success: a
// server that fails with status 200 is not believed. Unless the saga was submitted
// with a gid, the answer has to name it; one that is none is kept out of the
// journal.
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

// transportKind finds the kind in the text of an error of our transport, which
// http.Client has put the method and the URL before.
func transportKind(text string) string {
	_, failure, found := strings.Cut(text, kindMark)
	if !found {
		return kindOther
	}
	kind, _, _ := strings.Cut(failure, ":")
	return kind
}
