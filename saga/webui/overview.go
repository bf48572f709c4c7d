package webui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"sagabench/saga"
	"sagabench/saga/inspect"
)

// Bounds of what one overview reads.
const (
	overviewSagas = 5_000
	overviewBytes = 32 << 20 // of the sagas' bodies
	overviewTime  = time.Second
	overviewTTL   = 2 * time.Second // for which an overview is shown again
	overviewRows  = 20              // of each list
)

// overview is the content of the first page.
type overview struct {
	Unfinished, Due int64
	Oldest          string // age of the oldest unfinished saga
	Counters        saga.Counters
	Waiting, First  []row // waiting for a branch, and the oldest unfinished
	MoreWaiting     int
	Read            int
	Partly          bool // there are more unfinished sagas than were read
}

// overviewCache shares one overview among all readers.
type overviewCache struct {
	mu   sync.Mutex
	made time.Time
	last overview
	err  error
}

func (u *UI) showOverview(x *exchange) {
	o, err := u.cachedOverview()
	if err != nil {
		u.fail(x, err)
		return
	}
	o.Counters = u.coordinator.Counters()
	u.show(x, http.StatusOK, pageOverview, view{Title: "Sagas", Current: overviewName, Content: o})
}

func (u *UI) cachedOverview() (overview, error) {
	cache := &u.overview
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.made.IsZero() || time.Since(cache.made) >= overviewTTL {
		// Not the request's context: the result is for other requests too.
		cache.last, cache.err = u.readOverview(context.Background())
		cache.made = time.Now()
	}
	return cache.last, cache.err
}

func (u *UI) readOverview(ctx context.Context) (overview, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*overviewTime)
	defer cancel()
	stats, err := u.store.Stats(ctx)
	if err != nil {
		return overview{}, err
	}
	rows, all, err := u.unfinished(ctx)
	if err != nil {
		return overview{}, err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.GID, b.GID)) })
	o := overview{Unfinished: stats.Unfinished, Due: stats.Due, Read: len(rows), Partly: !all}
	if stats.Unfinished > 0 {
		o.Oldest = rough(stats.OldestAge)
	}
	for i, r := range rows {
		if i < overviewRows {
			plain := r
			plain.Why = "" // shown in the other list
			o.First = append(o.First, plain)
		}
		switch {
		case r.Why == "":
		case len(o.Waiting) < overviewRows:
			o.Waiting = append(o.Waiting, r)
		default:
			o.MoreWaiting++
		}
	}
	return o, nil
}

// unfinished reads the unfinished sagas, each once, and reports whether these are all.
func (u *UI) unfinished(ctx context.Context) (rows []row, all bool, err error) {
	began, bytes, seen := time.Now(), 0, make(map[string]bool)
	all = true
	err = u.reader.EachUnfinished(ctx, func(page *inspect.Page) (more bool, err error) {
		for _, info := range page.Sagas {
			bytes += len(info.Body)
			if !seen[info.GID] {
				seen[info.GID] = true
				rows = append(rows, newRow(info, page.Now))
			}
		}
		full := len(rows) >= overviewSagas || bytes >= overviewBytes || time.Since(began) >= overviewTime
		all = page.Next == "" || !full
		return all, nil
	})
	return rows, all, err
}
