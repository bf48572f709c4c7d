package httpapi

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
)

// demand is the body of what is asked of one saga.
type demand struct {
	GID       string `json:"gid"`
	TransType string `json:"trans_type"` // may be left out
	Reason    string `json:"rollback_reason"`
}

// byRequest is the reason where none is given.
const byRequest = "by request"

func (a *API) decodeDemand(c *gin.Context) (demand, error) {
	var d demand
	if err := a.decode(c, &d); err != nil {
		return d, err
	}
	return d, checkType(cmp.Or(d.TransType, typeSaga))
}

func (a *API) abort(c *gin.Context) {
	d, err := a.decodeDemand(c)
	if err == nil {
		err = a.coordinator.Abort(c.Request.Context(), d.GID, cmp.Or(d.Reason, byRequest))
	}
	a.finish(c, actionAbort, d.GID, err)
}

func (a *API) forceStop(c *gin.Context) {
	if a.cfg.Admin == nil || !a.cfg.Admin(c.Request) {
		answer(c, http.StatusForbidden, result{Message: "only the admin may stop a saga by force"})
		a.audited(c, actionForceStop, "")
		return
	}
	d, err := a.decodeDemand(c)
	if err == nil {
		err = a.forceStopUnfinished(c, d)
	}
	a.finish(c, actionForceStop, d.GID, err)
}

// forceStopUnfinished refuses a saga that has ended, in either way, as dtm does.
func (a *API) forceStopUnfinished(c *gin.Context, d demand) error {
	info, err := a.coordinator.Get(c.Request.Context(), d.GID)
	switch {
	case err != nil:
		return err
	case info.Status.Final():
		return fmt.Errorf("saga %s: %w: %v", d.GID, saga.ErrEnded, info.Status)
	}
	return a.coordinator.ForceStop(c.Request.Context(), d.GID, cmp.Or(d.Reason, byRequest))
}

func (a *API) resetNextCronTime(c *gin.Context) {
	d, err := a.decodeDemand(c)
	if err == nil {
		err = a.coordinator.Retry(c.Request.Context(), d.GID)
	}
	a.finish(c, actionRetry, d.GID, err)
}

func (a *API) finish(c *gin.Context, action, gid string, err error) {
	if err != nil {
		fail(c, err)
	} else {
		succeed(c)
	}
	a.audited(c, action, gid)
}
