package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
	"sagabench/store/pebblestore"
)

func (at *site) all(query string) listed {
	at.t.Helper()
	r := at.get("/api/dtmsvr/all?" + query)
	require.Equal(at.t, http.StatusOK, r.status, r.body)
	var l listed
	require.NoError(at.t, json.Unmarshal([]byte(r.body), &l))
	return l
}

func TestAll_Pages(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, nil)
		const sagas = 25
		for i := range sagas {
			body := at.sagaOf(fmt.Sprintf("saga-%d", i), m{"wait_result": true}, [2]string{"", ""})
			body["steps"] = []m{{}} // succeeds without a call
			require.Equal(t, http.StatusOK, at.submit(body).status)
		}
		seen := map[string]bool{}
		for position, pages := "", 0; ; pages++ {
			require.Less(t, pages, 100)
			l := at.all("limit=10&status=succeed&position=" + url.QueryEscape(position))
			require.LessOrEqual(t, len(l.Transactions), 10)
			for _, transaction := range l.Transactions {
				seen[transaction.GID] = true
			}
			if position = l.NextPosition; position == "" {
				break
			}
		}
		require.Len(t, seen, sagas)

		r := at.get("/api/dtmsvr/all?position=nowhere")
		require.Equal(t, http.StatusBadRequest, r.status, r.body)
	})
}

func TestAll_FiltersByTimeOfCreation(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, nil)
		require.Equal(t, http.StatusOK, at.submit(at.sagaOf("timed", m{"wait_result": true}, [2]string{"/ok", ""})).status)
		created := at.query("timed").Transaction.CreateTime.UnixMilli()
		for _, tt := range []struct {
			from, before int64
			want         int
		}{
			{created, created + 1, 1},
			{created + 1, created + 1000, 0},
			{created - 1000, created, 0},
			{created - 1000, created + 1000, 1},
		} {
			l := at.all(fmt.Sprintf("createTimeStart=%d&createTimeEnd=%d", tt.from, tt.before))
			require.Len(t, l.Transactions, tt.want, "%+v", tt)
		}
	})
}

// An unreadable record must not hide the others.
func TestAll_ListsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s, nil)
	errs := s.Apply(t.Context(), []store.Change{
		&store.Create{GID: "alien", Body: []byte("<xml/>"), Steps: 1, Owner: "others", Due: time.Hour},
	})
	require.NoError(t, errs[0])
	l := at.all("")
	require.Len(t, l.Transactions, 1)
	require.Equal(t, "alien", l.Transactions[0].GID)
	require.Equal(t, "submitted", l.Transactions[0].Status)
	require.Contains(t, at.log.String(), "cannot read a saga")

	r := at.get("/api/dtmsvr/query?gid=alien")
	require.Equal(t, http.StatusInternalServerError, r.status)
	require.Contains(t, r.body, "log has the details")
}

func TestResetCronTime_TakesUpAllThatWait(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, func(_ *Config, c *saga.Config) { c.RetryInterval = time.Hour })
		const sagas = 7
		gid := func(i int) string { return fmt.Sprintf("waits-%d", i) }
		for i := range sagas {
			body := at.sagaOf(gid(i), m{"retry_interval": 3600}, [2]string{"/ongoing", ""})
			if i%2 == 1 { // refused, and its compensation waits
				body = at.sagaOf(gid(i), m{"retry_interval": 3600}, [2]string{"/refuse", "/ongoing"})
			}
			require.Equal(t, http.StatusOK, at.submit(body).status)
		}
		for i := range sagas {
			at.until(gid(i), putOff)
		}
		at.branches.mend()
		for _, want := range []string{
			`{"has_remaining":true,"succeed_count":3}`,
			`{"has_remaining":true,"succeed_count":3}`,
			`{"has_remaining":false,"succeed_count":1}`,
			`{"has_remaining":false,"succeed_count":0}`,
		} {
			require.Equal(t, response{http.StatusOK, want}, at.get("/api/dtmsvr/resetCronTime?timeout=60&limit=3"))
		}
		for i := range sagas {
			at.until(gid(i), status([]string{"succeed", "failed"}[i%2]))
		}
	})
}

// Without parameters it retries every saga that a failing branch defers by default.
func TestResetCronTime_ByDefault_TakesUpAllThatWait(t *testing.T) {
	t.Parallel()
	const sagas = 20
	s := testkit.OpenPebble(t)
	at := start(t, s, func(_ *Config, c *saga.Config) { c.RetryInterval, c.MaxRetryInterval = time.Minute, time.Minute })
	gid := func(i int) string { return fmt.Sprintf("waits-%d", i) }
	for i := range sagas {
		require.Equal(t, http.StatusOK, at.submit(at.sagaOf(gid(i), nil, [2]string{"/broken", ""})).status)
	}
	for i := range sagas {
		at.until(gid(i), putOff)
	}
	errs := s.Apply(t.Context(), []store.Change{
		&store.Create{GID: "alien", Body: []byte("<xml/>"), Steps: 1, Owner: "others", Due: time.Hour},
	})
	require.NoError(t, errs[0])
	errs = s.Apply(t.Context(), []store.Change{
		&store.Transition{GID: "alien", Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted, Due: time.Hour, Release: true},
	})
	require.NoError(t, errs[0])
	at.branches.mend()
	require.Equal(t, response{http.StatusOK, `{"has_remaining":false,"succeed_count":20}`}, at.get("/api/dtmsvr/resetCronTime"))
	for i := range sagas {
		at.until(gid(i), status("succeed"))
	}
	r := at.get("/api/dtmsvr/resetCronTime?limit=1001")
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.body, "limit")
}

// How long a saga waits is the store's to say, whatever time it is here.
func TestResetCronTime_GoesByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			cfg := pebblestore.DefaultConfig()
			cfg.Dir, cfg.Now = t.TempDir(), func() time.Time { return time.Now().Add(off) }
			s, err := pebblestore.Open(t.Context(), cfg)
			require.NoError(t, err)
			t.Cleanup(func() { s.Close() })
			at := start(t, s, nil)
			body := at.sagaOf("waits", m{"retry_interval": 600}, [2]string{"/ongoing", ""})
			require.Equal(t, http.StatusOK, at.submit(body).status)
			at.until("waits", putOff)
			require.Equal(t, `{"has_remaining":false,"succeed_count":0}`, at.get("/api/dtmsvr/resetCronTime?timeout=1200").body)
			require.Equal(t, `{"has_remaining":false,"succeed_count":1}`, at.get("/api/dtmsvr/resetCronTime?timeout=300").body)
		})
	}
}

// A page of large sagas ends early, and the rest is on the next.
func TestAll_OfLargeSagas_PagesInBytes(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, nil)
		const sagas, size = 8, 2 << 20
		for i := range sagas {
			errs := s.Apply(t.Context(), []store.Change{&store.Create{
				GID: fmt.Sprint("large-", i), Steps: 1, Owner: "others", Due: time.Hour,
				Body: fmt.Appendf(nil, `{"steps":[{}],"custom":%q}`, strings.Repeat("x", size)),
			}})
			require.NoError(t, errs[0])
		}
		seen := map[string]bool{}
		for position, pages := "", 0; ; pages++ {
			require.Less(t, pages, 2*sagas+2)
			l := at.all("limit=1000&position=" + url.QueryEscape(position))
			require.Less(t, len(l.Transactions)*size, store.MaxPageBytes+store.MaxBodyBytes)
			for _, transaction := range l.Transactions {
				seen[transaction.GID] = true
			}
			if position = l.NextPosition; position == "" {
				break
			}
		}
		require.Len(t, seen, sagas)
	})
}

func TestSeconds_RoundsUp(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int64{0, 1, 1, 2}, []int64{
		seconds(0), seconds(time.Millisecond), seconds(time.Second), seconds(time.Second + 1),
	})
}

// Clients that do not read large answers are answered up to a bound, and keep nobody from
// small ones.
func TestQuery_BoundsTheLargeAnswersInMemory(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	s := testkit.OpenPebble(t)
	at := start(t, s, nil)
	for gid, size := range map[string]int{"large": saga.MaxPayloadBytes, "small": 1} {
		payload := strings.Repeat("x", size)
		require.Equal(t, http.StatusOK, at.post("/api/dtmsvr/submit",
			fmt.Sprintf(`{"gid":%q,"trans_type":"saga","wait_result":true,"steps":[{},{},{}],"payloads":[%q,%[2]q,%[2]q]}`, gid, payload)).status)
	}
	const clients = 2 * inspect.MaxBytes / (3 * saga.MaxPayloadBytes)
	for range clients {
		conn, err := net.Dial("tcp", strings.TrimPrefix(at.url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = io.WriteString(conn, "GET /api/dtmsvr/query?gid=large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return at.get("/api/dtmsvr/query?gid=large").status == http.StatusServiceUnavailable
	}, 5*patience, 5*time.Millisecond) // each look is 3 MB
	require.Equal(t, http.StatusOK, at.get("/api/dtmsvr/query?gid=small").status)
	require.Equal(t, http.StatusServiceUnavailable, at.get("/api/dtmsvr/query?gid=large").status)
}
