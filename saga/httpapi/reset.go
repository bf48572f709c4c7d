package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// resetCronTime retries sagas that are deferred for longer than a timeout from now, up
// to a limit, without waiting any further: for when what failed has been mended. dtm's
// default timeout, 105 s, is longer than any pause is by default here, so ours is 0: all
// that wait.
func (a *API) resetCronTime(c *gin.Context) {
	a.reset(c)
	a.audited(c, actionRetryAll, "")
}

func (a *API) reset(c *gin.Context) {
	timeout, err := integer(c, "timeout", 0, 0, int64(saga.MaxTimeout/time.Second))
	if err != nil {
		fail(c, err)
		return
	}
	limit, err := integer(c, "limit", 100, 1, maxReset)
	if err != nil {
		fail(c, err)
		return
	}
	done, more, err := a.endPauses(c.Request.Context(), time.Duration(timeout)*time.Second, int(limit))
	if err != nil {
		fail(c, err)
		return
	}
	answer(c, http.StatusOK, struct {
		HasRemaining bool `json:"has_remaining"`
		SucceedCount int  `json:"succeed_count"`
	}{more, done})
}

const (
	maxReset    = 1000 // sagas of one request: two calls of the store each
	resetAtOnce = 32   // share a batch of the store
)

// endPauses looks at all unfinished sagas until it has met one more than limit
// that are deferred for longer than timeout, by the store's clock.
func (a *API) endPauses(ctx context.Context, timeout time.Duration, limit int) (done int, more bool, err error) {
	for _, status := range []store.Status{store.StatusSubmitted, store.StatusAborting} {
		for query := (store.Query{Status: status}); ; {
			free, err := a.readPage(ctx)
			if err != nil {
				return done, false, err
			}
			page, err := a.store.List(ctx, query)
			if err != nil {
				free(0)
				return done, false, err
			}
			after := page.Now.Add(timeout)
			page.Records = slices.DeleteFunc(page.Records, func(r store.Record) bool {
				if r.Owner != "" || !r.Due.After(after) {
					return true // it runs, or is about to
				}
				_, err := saga.Read(r)
				return err != nil // which would be the end of this for all others
			})
			for i := range page.Records { // their gids are what counts from here
				page.Records[i].Body, page.Records[i].Note = nil, ""
			}
			free(0)
			for len(page.Records) > 0 {
				if done == limit {
					return done, true, nil
				}
				n := min(len(page.Records), limit-done, resetAtOnce)
				retried, err := a.retryAll(ctx, page.Records[:n])
				done += retried
				if err != nil {
					return done, false, err
				}
				page.Records = page.Records[n:]
			}
			if query.Cursor = page.Next; page.Next == "" {
				break
			}
		}
	}
	return done, false, nil
}

// retryAll retries sagas side by side, and returns how many. Those that have ended
// meanwhile do not count.
func (a *API) retryAll(ctx context.Context, records []store.Record) (done int, err error) {
	var all sync.WaitGroup
	errs := make([]error, len(records))
	for i, r := range records {
		all.Go(func() { errs[i] = a.coordinator.Retry(ctx, r.GID) })
	}
	all.Wait()
	for _, failed := range errs {
		switch {
		case failed == nil:
			done++
		case errors.Is(failed, saga.ErrEnded), errors.Is(failed, store.ErrNotFound):
		default:
			err = failed
		}
	}
	return done, err
}
