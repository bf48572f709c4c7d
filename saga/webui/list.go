package webui

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
)

// Bounds of one page of a list.
const (
	listRows = 50
	listTime = time.Second // for reading it
)

// row is a saga in a list.
type row struct {
	GID     string
	Status  string
	State   string // running, deferred, …
	Why     string // it waits or was aborted; empty otherwise
	Tries   int    // most failed attempts of any branch
	Next    moment // next attempt of a deferred saga
	Created moment
	created time.Time
}

// newRow returns the row of a saga; now is by the store's clock.
func newRow(info saga.Info, now time.Time) row {
	r := row{GID: info.GID, Status: info.Status.String(), Created: at(info.Created, now), created: info.Created}
	if info.Saga == nil {
		r.State = "cannot be read"
		return r
	}
	r.State = state(info, now)
	switch {
	case info.Status.Final():
		r.Why = info.State.Aborted
	case info.Owner == "" && len(info.State.Retries) > 0:
		r.Why = info.State.RetryReason
		r.Next = ahead(info.Due, now)
		for _, h := range info.State.Retries {
			r.Tries = max(r.Tries, h.Tries)
		}
	}
	return r
}

// state says what is being done about a saga.
func state(info saga.Info, now time.Time) string {
	switch {
	case info.Status.Final():
		return "ended"
	case info.Owner != "" && info.Due.After(now):
		return "running"
	case info.Owner != "":
		return "its coordinator went silent; to be recovered"
	case info.Due.After(now):
		return "deferred"
	default:
		return "waits for a coordinator"
	}
}

// list is a page of a list.
type list struct {
	Status string // empty: any
	Rows   []row
	Next   string // URL of the next page; empty on the last
	Later  bool   // not the first page
}

func (u *UI) showList(x *exchange) {
	query := store.Query{Cursor: x.parameter("after")}
	l := list{Status: x.parameter("status"), Later: query.Cursor != ""}
	var known bool
	if query.Status, known = inspect.ParseStatus(l.Status); !known && l.Status != "" {
		u.problem(x, http.StatusBadRequest, "status: there are submitted, aborting, succeed and failed.")
		return
	}
	// A store's page may be empty and still have a next one.
	for began := time.Now(); ; {
		query.Limit = listRows - len(l.Rows)
		page, err := u.reader.Page(x.r.Context(), query)
		if err != nil {
			u.fail(x, err)
			return
		}
		for _, info := range page.Sagas {
			l.Rows = append(l.Rows, newRow(info, page.Now))
		}
		page.Release(0)
		query.Cursor = page.Next
		if query.Cursor == "" || len(l.Rows) >= listRows || time.Since(began) >= listTime {
			break
		}
	}
	if query.Cursor != "" {
		l.Next = "/ui/sagas?" + url.Values{"status": {l.Status}, "after": {query.Cursor}}.Encode()
	}
	name := cmp.Or(l.Status, allName)
	u.show(x, http.StatusOK, pageList, view{Title: "Sagas: " + name, Current: name, Content: l})
}

func (u *UI) find(x *exchange) {
	gid := strings.TrimSpace(x.parameter("gid"))
	if err := store.CheckGID(gid); err != nil {
		u.fail(x, err)
		return
	}
	x.redirect("/ui/sagas/" + gid)
}
