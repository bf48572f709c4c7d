package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
)

// resetCronTime retries deferred sagas at once, after the cause of their failures was
// removed: those whose retry is more than timeout ahead, up to limit. dtm's default
// timeout, 105 s, is longer than any pause is by default here, so ours is 0.
func (a *API) resetCronTime(w http.ResponseWriter, r *http.Request) {
	a.audit(r, actionRetryAll, "", a.retryDeferred(w, r))
}

const (
	maxReset    = 1000 // sagas per request, with two calls of the store each
	resetAtOnce = 32   // sagas retried at once: they share a batch of the store
)

func (a *API) retryDeferred(w http.ResponseWriter, r *http.Request) (status int) {
	parameters := r.URL.Query()
	timeout, err := integer(parameters, "timeout", 0, 0, int64(saga.MaxTimeout/time.Second))
	if err != nil {
		return a.fail(w, r, err)
	}
	limit, err := integer(parameters, "limit", 100, 1, maxReset)
	if err != nil {
		return a.fail(w, r, err)
	}
	var response struct {
		HasRemaining bool `json:"has_remaining"`
		SucceedCount int  `json:"succeed_count"`
	}
	ctx := r.Context()
	err = a.reader.EachUnfinished(ctx, func(page *inspect.Page) (more bool, err error) {
		gids := deferred(page, time.Duration(timeout)*time.Second)
		page.Release(0)
		for len(gids) > 0 {
			if response.SucceedCount == int(limit) {
				response.HasRemaining = true
				return false, nil
			}
			n := min(len(gids), int(limit)-response.SucceedCount, resetAtOnce)
			retried, err := a.retryAll(ctx, gids[:n])
			response.SucceedCount += retried
			if err != nil {
				return false, err
			}
			gids = gids[n:]
		}
		return true, nil
	})
	if err != nil {
		return a.fail(w, r, err)
	}
	return respond(w, http.StatusOK, response)
}

// deferred returns the gids of the sagas whose retry is more than timeout ahead, by the
// store's clock, and drops the page's sagas.
func deferred(page *inspect.Page, timeout time.Duration) (gids []string) {
	for _, info := range page.Sagas {
		if info.Saga != nil && info.Owner == "" && info.Due.After(page.Now.Add(timeout)) {
			gids = append(gids, info.GID)
		}
	}
	page.Sagas = nil
	return gids
}

// retryAll retries sagas concurrently, and returns how many it did. Those that have
// ended meanwhile do not count.
func (a *API) retryAll(ctx context.Context, gids []string) (done int, err error) {
	var all sync.WaitGroup
	errs := make([]error, len(gids))
	for i, gid := range gids {
		all.Go(func() { errs[i] = a.coordinator.Retry(ctx, gid) })
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
