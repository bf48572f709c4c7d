package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"sagabench/internal/secret"
	"sagabench/saga/httpapi"
)

// maxAudited bounds what a client can have written into one field of a line.
const maxAudited = 200

// audited logs who did something, and what came of it. What was done is logged
// always; of what was refused the first lines in a while, for anybody can be refused
// at any rate.
func (g *guard) audited(r *http.Request, shown secret.Text, action, gid string, status int) {
	done := status < http.StatusBadRequest
	fields := []any{"action", action}
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, name, value[:min(len(value), maxAudited)])
		}
	}
	add("gid", gid)
	level, outcome := slog.LevelInfo, "done"
	switch {
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable: // then nothing was done
		level, outcome = slog.LevelWarn, "failed"
	case !done:
		level, outcome = slog.LevelWarn, "refused"
	}
	fields = append(fields, "outcome", outcome, "status", status)
	role, token := g.whose(shown)
	add("role", role)
	add("token", token)
	if shown := certificate(r); shown != nil {
		add("certificate", shown.Subject.String())
	}
	add("from", r.RemoteAddr)
	add("forwarded_for", r.Header.Get("X-Forwarded-For")) // as a proxy in front, or whoever else, says
	if !done {
		add("method", r.Method)
		add("path", r.URL.Path)
		g.seldom.log(level, "audit", action, fields...)
		return
	}
	g.seldom.logger.Log(context.Background(), level, "audit", fields...)
}

// refusedSubmits are answers to submits that were refused. A 409 may be one, too, or the
// end of a saga.
var refusedSubmits = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable}

// auditedRequest is audited for what shows its token with each request.
//
// Submits that were taken, or failed as sagas do, are left out unless the
// configuration asks for them: there is one for each saga, and the store holds it.
func (g *guard) auditedRequest(r *http.Request, action, gid string, status int) {
	if action == httpapi.ActionSubmit && !g.auditSubmits && !slices.Contains(refusedSubmits, status) {
		return
	}
	shown := bearer(r)
	token, ok := g.tokens.Find(shown)
	if !ok {
		token, _ = g.admins.Find(shown)
	}
	g.audited(r, token, action, gid, status)
}

// whose names a token, of which a log may hold the fingerprint only.
func (g *guard) whose(token secret.Text) (role, fingerprint string) {
	if !token.IsSet() {
		return "", ""
	}
	role = "user"
	if g.admins.Matches(token.Reveal()) {
		role = "admin"
	}
	return role, token.Fingerprint()
}
