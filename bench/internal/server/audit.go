package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"sagabench/internal/secret"
	"sagabench/saga/httpapi"
)

// maxAuditField bounds a field that the client chooses, in bytes.
const maxAuditField = 200

// audit logs who did something, and the outcome. What was done is always logged. Lines about
// what was refused are limited, since any client can cause them.
func (a *auth) audit(r *http.Request, shown secret.Text, action, gid string, status int) {
	done := status < http.StatusBadRequest
	fields := []any{"action", action}
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, name, value[:min(len(value), maxAuditField)])
		}
	}
	add("gid", gid)
	level, outcome := slog.LevelInfo, "done"
	switch {
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable: // 503: nothing was done
		level, outcome = slog.LevelWarn, "failed"
	case !done:
		level, outcome = slog.LevelWarn, "refused"
	}
	fields = append(fields, "outcome", outcome, "status", status)
	role, token := a.identity(shown)
	add("role", role)
	add("token", token)
	if shown := certificate(r); shown != nil {
		add("certificate", shown.Subject.String())
	}
	add("from", r.RemoteAddr)
	add("forwarded_for", r.Header.Get("X-Forwarded-For")) // set by a proxy, or by anybody
	if !done {
		add("method", r.Method)
		add("path", r.URL.Path)
		a.log.log(level, "audit", action, fields...)
		return
	}
	a.log.logger.Log(context.Background(), level, "audit", fields...)
}

// refusedSubmits are the statuses of submits that were refused. A 409 is left out: it is also
// the outcome of a failed saga.
var refusedSubmits = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable}

// auditRequest is audit for a request with its token in a header. Accepted submits are left
// out unless Config.AuditSubmits is set: the store has each of them.
func (a *auth) auditRequest(r *http.Request, action, gid string, status int) {
	if action == httpapi.ActionSubmit && !a.auditSubmits && !slices.Contains(refusedSubmits, status) {
		return
	}
	shown := bearer(r)
	token, ok := a.tokens.Find(shown)
	if !ok {
		token, _ = a.admins.Find(shown)
	}
	a.audit(r, token, action, gid, status)
}

// identity returns the role and the fingerprint of a token for the log.
func (a *auth) identity(token secret.Text) (role, fingerprint string) {
	if !token.IsSet() {
		return "", ""
	}
	role = "user"
	if a.admins.Matches(token.Reveal()) {
		role = "admin"
	}
	return role, token.Fingerprint()
}
