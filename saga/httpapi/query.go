package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// found is the answer to query. A null transaction says that there is no such
// saga.
type found struct {
	Branches    []branch     `json:"branches"`
	Transaction *transaction `json:"transaction"`
}

func (a *API) query(c *gin.Context) {
	gid := c.Query("gid")
	if gid == "" {
		answer(c, http.StatusInternalServerError, result{Message: "no gid specified"}) // 500 as dtm has it
		return
	}
	info, err := a.get(c, gid)
	switch {
	case err != nil:
		fail(c, err)
	case info == nil:
		answer(c, http.StatusOK, found{Branches: []branch{}})
	default:
		if n := int64(len(info.Body)); n > smallAnswer {
			if !a.reading.TryAcquire(n) {
				fail(c, errReading)
				return
			}
			defer a.reading.Release(n)
		}
		t := describeWhole(*info)
		answer(c, http.StatusOK, found{Branches: branches(*info), Transaction: &t})
	}
}

const (
	// maxReading bounds the bodies of sagas that are in memory to be answered, and the
	// large answers that clients have not taken yet.
	maxReading = 4 * store.MaxPageBytes
	// smallAnswer is how long one may be that does not count.
	smallAnswer = 64 << 10
)

// errReading: maxReading bytes are in use.
var errReading = errors.New("too many large sagas are read at once")

// readPage makes room for a page. free gives back all of it but keep.
func (a *API) readPage(ctx context.Context) (free func(keep int), err error) {
	ctx, cancel := context.WithTimeout(ctx, decodingWait)
	defer cancel()
	held := int64(store.MaxPageBytes)
	if a.reading.Acquire(ctx, held) != nil {
		return nil, errReading
	}
	return func(keep int) {
		left := min(held, int64(keep))
		a.reading.Release(held - left)
		held = left
	}, nil
}

// get gives nil if there is no such saga, nor could be.
func (a *API) get(c *gin.Context, gid string) (*saga.Info, error) {
	if store.CheckGID(gid) != nil {
		return nil, nil
	}
	info, err := a.coordinator.Get(c.Request.Context(), gid)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// listed is the answer to all.
type listed struct {
	NextPosition string        `json:"next_position"` // empty: there is no more
	Transactions []transaction `json:"transactions"`
}

// maxListed bounds a page: its sagas are read whole.
const maxListed = 1000

func (a *API) all(c *gin.Context) {
	l := listed{Transactions: []transaction{}}
	if gid := c.Query("gid"); gid != "" {
		info, err := a.get(c, gid)
		if err != nil {
			fail(c, err)
			return
		}
		if info != nil {
			l.Transactions = append(l.Transactions, describe(*info))
		}
		answer(c, http.StatusOK, l)
		return
	}
	query, some, err := listQuery(c)
	if err != nil {
		fail(c, err)
		return
	}
	if some {
		free, err := a.readPage(c.Request.Context())
		if err != nil {
			fail(c, err)
			return
		}
		defer free(0)
		page, err := a.store.List(c.Request.Context(), query)
		if err != nil {
			fail(c, err)
			return
		}
		l.NextPosition = page.Next
		for _, r := range page.Records {
			info, err := saga.Read(r)
			if err != nil {
				a.log.Error("cannot read a saga", "gid", r.GID, "error", err)
				info = saga.Info{Record: r, Saga: new(saga.Saga)} // what a page can still say of it
			}
			l.Transactions = append(l.Transactions, describe(info))
		}
		text, err := json.Marshal(l)
		if err != nil { // strings, numbers and times always encode
			panic(err)
		}
		if len(text) <= smallAnswer {
			free(0) // however slowly it is taken
		} else {
			free(len(text))
		}
		write(c, http.StatusOK, text)
		return
	}
	answer(c, http.StatusOK, l)
}

// listQuery reads the filters; some tells whether anything can pass them.
func listQuery(c *gin.Context) (q store.Query, some bool, err error) {
	q.Cursor = c.Query("position")
	limit, err := integer(c, "limit", 100, 1, maxListed)
	if err != nil {
		return q, false, err
	}
	q.Limit = int(limit)
	if q.CreatedFrom, err = milliseconds(c, "createTimeStart"); err != nil {
		return q, false, err
	}
	if q.CreatedBefore, err = milliseconds(c, "createTimeEnd"); err != nil {
		return q, false, err
	}
	if t := c.Query("transType"); t != "" && t != typeSaga {
		return q, false, nil
	}
	switch status := c.Query("status"); status {
	case "":
	case "prepared":
		return q, false, nil // no saga waits for a submit
	default:
		for _, s := range []store.Status{store.StatusSubmitted, store.StatusAborting, store.StatusSucceeded, store.StatusFailed} {
			if status == s.String() {
				q.Status = s
			}
		}
		if q.Status == 0 {
			return q, false, invalid("status: %q, must be prepared, submitted, aborting, succeed or failed", status)
		}
	}
	return q, true, nil
}

// integer reads a query parameter.
func integer(c *gin.Context, name string, otherwise, least, most int64) (int64, error) {
	text := c.Query(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("%s: %q, must be an integer from %d to %d", name, text, least, most)
	}
	return n, nil
}

// milliseconds reads a query parameter that counts them since 1970.
func milliseconds(c *gin.Context, name string) (time.Time, error) {
	const none, most = -1, 1 << 52
	ms, err := integer(c, name, none, 0, most)
	if err != nil || ms == none {
		return time.Time{}, err
	}
	return time.UnixMilli(ms), nil
}
