package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"sagabench/saga"
)

// control is the body of a control command: abort, forceStop or resetNextCronTime.
type control struct {
	GID       string `json:"gid"`
	TransType string `json:"trans_type"` // optional
	Reason    string `json:"rollback_reason"`
}

func (a *API) abort(w http.ResponseWriter, r *http.Request) {
	a.control(w, r, actionAbort, func(ctx context.Context, cmd control) error {
		return a.coordinator.Abort(ctx, cmd.GID, cmd.Reason)
	})
}

// forceStop refuses a saga that has ended, as dtm does.
func (a *API) forceStop(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Admin == nil || !a.cfg.Admin(r) {
		status := respond(w, http.StatusForbidden, result{Message: "only the admin may stop a saga by force"})
		a.audit(r, actionForceStop, "", status)
		return
	}
	a.control(w, r, actionForceStop, func(ctx context.Context, cmd control) error {
		info, err := a.coordinator.Get(ctx, cmd.GID)
		switch {
		case err != nil:
			return err
		case info.Status.Final():
			return fmt.Errorf("saga %s: %w: %v", cmd.GID, saga.ErrEnded, info.Status)
		}
		return a.coordinator.ForceStop(ctx, cmd.GID, cmd.Reason)
	})
}

func (a *API) resetNextCronTime(w http.ResponseWriter, r *http.Request) {
	a.control(w, r, actionRetry, func(ctx context.Context, cmd control) error {
		return a.coordinator.Retry(ctx, cmd.GID)
	})
}

// control reads a command, runs it, responds and audits.
func (a *API) control(w http.ResponseWriter, r *http.Request, action string, run func(context.Context, control) error) {
	var cmd control
	err := a.decode(r, &cmd)
	if err == nil {
		err = checkType(cmp.Or(cmd.TransType, typeSaga))
	}
	if err == nil {
		cmd.Reason = cmp.Or(cmd.Reason, "by request")
		err = run(r.Context(), cmd)
	}
	a.audit(r, action, cmd.GID, a.finish(w, r, err))
}
