package webui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// Bounds of what an overview reads, of the sagas and of their bodies, and of how
// often it does.
const (
	overviewSagas = 5_000
	overviewBytes = 32 << 20
	overviewTime  = time.Second
	overviewKept  = 2 * time.Second
	overviewRows  = 20
)

// overview is how things stand.
type overview struct {
	Unfinished, Due int64
	Oldest          string // age of the oldest unfinished saga
	Counters        saga.Counters
	Held, First     []row // held up, and the oldest unfinished
	MoreHeld        int
	Looked          int
	Partly          bool // there are more unfinished sagas than were looked at
}

// overviewCache spares the store the same work for everybody who looks.
type overviewCache struct {
	mu   sync.Mutex
	made time.Time
	last overview
	err  error
}

func (u *UI) showOverview(c *gin.Context) {
	o, err := u.currentOverview()
	if err != nil {
		u.fail(c, err)
		return
	}
	o.Counters = u.coordinator.Counters()
	u.show(c, http.StatusOK, pageOverview, view{Title: "Sagas", At: overviewName, Content: o})
}

func (u *UI) currentOverview() (overview, error) {
	cache := &u.overview
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.made.IsZero() || time.Since(cache.made) >= overviewKept {
		// Not the context of whoever asks: the answer is for others too.
		cache.last, cache.err = u.look(context.Background())
		cache.made = time.Now()
	}
	return cache.last, cache.err
}

func (u *UI) look(ctx context.Context) (overview, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*overviewTime)
	defer cancel()
	stats, err := u.store.Stats(ctx)
	if err != nil {
		return overview{}, err
	}
	rows, whole, err := u.unfinished(ctx)
	if err != nil {
		return overview{}, err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.GID, b.GID)) })
	o := overview{Unfinished: stats.Unfinished, Due: stats.Due, Looked: len(rows), Partly: !whole}
	if stats.Unfinished > 0 {
		o.Oldest = rough(stats.OldestAge)
	}
	for i, r := range rows {
		if i < overviewRows {
			plain := r
			plain.Why = "" // which stands in the other list
			o.First = append(o.First, plain)
		}
		switch {
		case r.Why == "":
		case len(o.Held) < overviewRows:
			o.Held = append(o.Held, r)
		default:
			o.MoreHeld++
		}
	}
	return o, nil
}

// unfinished reads the unfinished sagas, each once, and reports whether that
// were all.
func (u *UI) unfinished(ctx context.Context) (rows []row, whole bool, err error) {
	began := time.Now()
	read := 0
	seen := make(map[string]bool)
	for _, status := range []store.Status{store.StatusAborting, store.StatusSubmitted} {
		for query := (store.Query{Status: status}); ; {
			page, err := u.store.List(ctx, query)
			if err != nil {
				return nil, false, err
			}
			for _, r := range page.Records {
				read += len(r.Body)
				if !seen[r.GID] {
					seen[r.GID] = true
					rows = append(rows, u.row(r, page.Now))
				}
			}
			if query.Cursor = page.Next; page.Next == "" {
				break
			}
			if len(rows) >= overviewSagas || read >= overviewBytes || time.Since(began) >= overviewTime {
				return rows, false, nil
			}
		}
	}
	return rows, true, nil
}
