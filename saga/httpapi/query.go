package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
)

// found is the response to query. A null transaction says that there is no such saga.
type found struct {
	Branches    []branchAnswer `json:"branches"`
	Transaction *transaction   `json:"transaction"`
}

func (a *API) query(w http.ResponseWriter, r *http.Request) {
	gid := r.URL.Query().Get("gid")
	if gid == "" {
		respond(w, http.StatusInternalServerError, result{Message: "no gid specified"}) // 500 as dtm does
		return
	}
	a.withSaga(w, r, gid, found{Branches: []branchAnswer{}}, func(info saga.Info) any {
		t := describeWhole(info)
		return found{Branches: branches(info), Transaction: &t}
	})
}

// withSaga responds with what describe makes of a saga, or with none if there is no
// saga of that gid.
func (a *API) withSaga(w http.ResponseWriter, r *http.Request, gid string, none any, describe func(saga.Info) any) {
	info, release, err := a.reader.Saga(r.Context(), gid)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid): // a malformed gid is no saga's
		respond(w, http.StatusOK, none)
	case err != nil:
		a.fail(w, r, err)
	default:
		defer release()
		respond(w, http.StatusOK, describe(info))
	}
}

// listed is the response to all.
type listed struct {
	NextPosition string        `json:"next_position"` // empty: there is no more
	Transactions []transaction `json:"transactions"`
}

// maxListed bounds a page, since its sagas are read whole.
const maxListed = 1000

func (a *API) all(w http.ResponseWriter, r *http.Request) {
	list := listed{Transactions: []transaction{}}
	parameters := r.URL.Query()
	if gid := parameters.Get("gid"); gid != "" {
		a.withSaga(w, r, gid, list, func(info saga.Info) any { return listed{Transactions: []transaction{describe(info)}} })
		return
	}
	query, some, err := listQuery(parameters)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if !some {
		respond(w, http.StatusOK, list)
		return
	}
	page, err := a.reader.Page(r.Context(), query)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer page.Release(0)
	list.NextPosition = page.Next
	for _, info := range page.Sagas {
		if info.Saga == nil {
			info.Saga = new(saga.Saga) // its record still has gid, status and times
		}
		list.Transactions = append(list.Transactions, describe(info))
	}
	text := encode(list)
	page.Release(len(text)) // the client may be slow to read the response
	write(w, http.StatusOK, text)
}

// listQuery reads the filters. some is false if no saga can match them.
func listQuery(parameters url.Values) (q store.Query, some bool, err error) {
	q.Cursor = parameters.Get("position")
	limit, err := integer(parameters, "limit", 100, 1, maxListed)
	if err != nil {
		return q, false, err
	}
	q.Limit = int(limit)
	if q.CreatedFrom, err = milliseconds(parameters, "createTimeStart"); err != nil {
		return q, false, err
	}
	if q.CreatedBefore, err = milliseconds(parameters, "createTimeEnd"); err != nil {
		return q, false, err
	}
	if t := parameters.Get("transType"); t != "" && t != typeSaga {
		return q, false, nil
	}
	switch status := parameters.Get("status"); status {
	case "":
	case "prepared":
		return q, false, nil // no saga waits for a submit
	default:
		var ok bool
		if q.Status, ok = inspect.ParseStatus(status); !ok {
			return q, false, invalid("status: %q, must be prepared, submitted, aborting, succeed or failed", status)
		}
	}
	return q, true, nil
}

// integer reads a query parameter.
func integer(parameters url.Values, name string, absent, least, most int64) (int64, error) {
	text := parameters.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("%s: %q, must be an integer from %d to %d", name, text, least, most)
	}
	return n, nil
}

// milliseconds reads a query parameter in milliseconds since 1970.
func milliseconds(parameters url.Values, name string) (time.Time, error) {
	const none, most = -1, 1 << 52
	ms, err := integer(parameters, name, none, 0, most)
	if err != nil || ms == none {
		return time.Time{}, err
	}
	return time.UnixMilli(ms), nil
}
