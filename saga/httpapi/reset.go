package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// resetCronTime ends the pauses of sagas that are put off for longer than a
// timeout from now, up to a limit: for when what held them up has been mended.
func (a *API) resetCronTime(c *gin.Context) {
	a.retryAll(c)
	a.audited(c, actionRetryAll, "")
}

func (a *API) retryAll(c *gin.Context) {
	timeout, err := integer(c, "timeout", 105, 0, int64(saga.MaxTimeout/time.Second))
	if err != nil {
		fail(c, err)
		return
	}
	limit, err := integer(c, "limit", 100, 1, maxReset)
	if err != nil {
		fail(c, err)
		return
	}
	after := time.Now().Add(time.Duration(timeout) * time.Second)
	done, more, err := a.endPauses(c.Request.Context(), after, limit)
	if err != nil {
		fail(c, err)
		return
	}
	answer(c, http.StatusOK, struct {
		HasRemaining bool  `json:"has_remaining"`
		SucceedCount int64 `json:"succeed_count"`
	}{more, done})
}

const maxReset = 100_000

// endPauses looks at all unfinished sagas until it has met one more than limit
// that are put off until later than after.
func (a *API) endPauses(ctx context.Context, after time.Time, limit int64) (done int64, more bool, err error) {
	for _, status := range []store.Status{store.StatusSubmitted, store.StatusAborting} {
		for query := (store.Query{Status: status}); ; {
			page, err := a.store.List(ctx, query)
			if err != nil {
				return done, false, err
			}
			for _, r := range page.Records {
				if r.Owner != "" || !r.Due.After(after) {
					continue // it runs, or is about to
				}
				if done == limit {
					return done, true, nil
				}
				switch err := a.coordinator.Retry(ctx, r.GID); {
				case err == nil:
					done++
				case errors.Is(err, saga.ErrEnded), errors.Is(err, store.ErrNotFound):
					// somebody was faster
				default:
					return done, false, err
				}
			}
			if query.Cursor = page.Next; page.Next == "" {
				break
			}
		}
	}
	return done, false, nil
}
