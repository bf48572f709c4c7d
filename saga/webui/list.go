package webui

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// Bounds of a page of a list: how many sagas it shows, and how long it looks for
// them.
const (
	listRows = 50
	listTime = time.Second
)

// statuses in the order in which they are offered.
var statuses = [...]store.Status{store.StatusSubmitted, store.StatusAborting, store.StatusSucceeded, store.StatusFailed}

// row is a saga in a list.
type row struct {
	GID     string
	Status  string
	State   string // what is being done about it
	Why     string // it is held up or was aborted, if so
	Tries   int    // failed attempts of the branch that has most
	Next    moment // attempt, if it is put off
	Created moment
	created time.Time
}

// row of a record, as the store's clock is now. One that cannot be read is shown as
// far as it goes.
func (u *UI) row(r store.Record, now time.Time) row {
	shown := row{GID: r.GID, Status: r.Status.String(), Created: at(r.Created, now), created: r.Created}
	info, err := saga.Read(r)
	if err != nil {
		u.log.Error("cannot read a saga", "gid", r.GID, "error", err)
		shown.State = "cannot be read"
		return shown
	}
	shown.State = state(info, now)
	switch {
	case r.Status.Final():
		shown.Why = info.State.Aborted
	case r.Owner == "" && len(info.State.Holds) > 0:
		shown.Why = info.State.Held
		shown.Next = ahead(r.Due, now)
		for _, h := range info.State.Holds {
			shown.Tries = max(shown.Tries, h.Tries)
		}
	}
	return shown
}

// state says what is being done about a saga.
func state(info saga.Info, now time.Time) string {
	switch {
	case info.Status.Final():
		return "ended"
	case info.Owner != "" && info.Due.After(now):
		return "running"
	case info.Owner != "":
		return "its coordinator went silent; to be taken over"
	case info.Due.After(now):
		return "put off"
	default:
		return "waits to be taken up"
	}
}

// listed is a page of a list.
type listed struct {
	Status string // empty: any
	Rows   []row
	Next   string // URL of the next page; empty on the last
	Later  bool   // it is not the first
}

func (u *UI) showList(c *gin.Context) {
	query := store.Query{Cursor: c.Query("after")}
	l := listed{Status: c.Query("status"), Later: query.Cursor != ""}
	for _, s := range statuses {
		if s.String() == l.Status {
			query.Status = s
		}
	}
	if l.Status != "" && query.Status == 0 {
		u.problem(c, http.StatusBadRequest, "status: there are submitted, aborting, succeed and failed.")
		return
	}
	// A store's page may be empty and still have a next one.
	for began := time.Now(); ; {
		query.Limit = listRows - len(l.Rows)
		err := u.whileReading(c, func() error {
			page, err := u.store.List(c.Request.Context(), query)
			for _, r := range page.Records {
				l.Rows = append(l.Rows, u.row(r, page.Now))
			}
			query.Cursor = page.Next
			return err
		})
		if err != nil {
			u.fail(c, err)
			return
		}
		if query.Cursor == "" || len(l.Rows) >= listRows || time.Since(began) >= listTime {
			break
		}
	}
	if query.Cursor != "" {
		l.Next = "/ui/sagas?" + url.Values{"status": {l.Status}, "after": {query.Cursor}}.Encode()
	}
	name := cmp.Or(l.Status, allName)
	u.show(c, http.StatusOK, pageList, view{Title: "Sagas: " + name, At: name, Content: l})
}

func (u *UI) find(c *gin.Context) {
	gid := strings.TrimSpace(c.Query("gid"))
	if err := store.CheckGID(gid); err != nil {
		u.fail(c, err)
		return
	}
	c.Redirect(http.StatusSeeOther, "/ui/sagas/"+gid)
}
