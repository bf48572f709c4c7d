package dtmclient

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dtm-labs/client/dtmcli"
	"github.com/dtm-labs/logger"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/httpapi"
	"sagabench/store/pebblestore"
)

func TestMain(m *testing.M) {
	logger.InitLog("fatal") // the client logs every request otherwise
	dtmcli.GetRestyClient().SetTimeout(patience)
	os.Exit(m.Run())
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// site is a server, as its clients know it, and the participants of their sagas.
type site struct {
	t            *testing.T
	dtm          string // what clients are told the server is
	participants *participants
	busi         string // where the participants are
}

// start serves the API over a store of its own.
func start(t *testing.T) *site {
	t.Helper()
	cfg := pebblestore.DefaultConfig()
	cfg.Dir = t.TempDir()
	s, err := pebblestore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	caller, err := branch.NewHTTP(branch.HTTPConfig{})
	require.NoError(t, err)
	t.Cleanup(caller.Close)
	sagas := saga.DefaultConfig()
	sagas.Lease, sagas.RequestTimeout = time.Minute, 20*time.Second
	sagas.PollInterval = 20 * time.Millisecond
	sagas.RetryInterval = 20 * time.Millisecond
	c, err := saga.New(s, caller, sagas)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	})
	routes := http.NewServeMux()
	httpapi.New(c, s, httpapi.Config{Version: "test"}).Register(routes.HandleFunc)
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)

	p := &participants{t: t, handlers: map[string]handler{}}
	busi := httptest.NewServer(p)
	t.Cleanup(busi.Close)
	return &site{t: t, dtm: server.URL + "/api/dtmsvr", participants: p, busi: busi.URL}
}

// saga is a new one under a gid from the server.
func (at *site) saga() *dtmcli.Saga {
	at.t.Helper()
	return dtmcli.NewSaga(at.dtm, dtmcli.MustGenGid(at.dtm))
}

// add adds a step whose endpoints are named after it.
func (at *site) add(s *dtmcli.Saga, step string) {
	s.Add(at.busi+"/"+step, at.busi+"/"+step+"Compensate", map[string]int{"amount": 30})
}

// queried is what query says of a saga, as far as the tests look at it.
type queried struct {
	Transaction struct {
		Status     string    `json:"status"`
		TransType  string    `json:"trans_type"`
		CreateTime time.Time `json:"create_time"`
		FinishTime time.Time `json:"finish_time"`
		Options    string    `json:"options"`
		dtmcli.TransOptions
		Steps          []map[string]string `json:"steps"`
		Payloads       []string            `json:"payloads"`
		RollbackReason string              `json:"rollback_reason"`
	} `json:"transaction"`
	Branches []struct {
		BranchID string `json:"branch_id"`
		Op       string `json:"op"`
		Status   string `json:"status"`
		URL      string `json:"url"`
		BinData  []byte `json:"bin_data"`
	} `json:"branches"`
}

func (at *site) query(gid string) queried {
	at.t.Helper()
	var q queried
	r, err := dtmcli.GetRestyClient().R().SetQueryParam("gid", gid).SetResult(&q).Get(at.dtm + "/query")
	require.NoError(at.t, err)
	require.Equal(at.t, http.StatusOK, r.StatusCode(), r.String())
	return q
}

// until waits for a saga's status.
func (at *site) until(gid, status string) queried {
	at.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		q := at.query(gid)
		if q.Transaction.Status == status {
			return q
		}
		require.True(at.t, time.Now().Before(deadline), "%+v", q)
	}
}

// handler is what a participant does when it is called. Its error becomes dtm's
// answer.
type handler func(call call) error

// call is one call of a participant.
type call struct {
	name    string // of the endpoint
	at      time.Time
	body    string
	header  http.Header
	barrier *dtmcli.BranchBarrier
	attempt int // of this endpoint, from 1
}

// participants are endpoints that remember who called them. Where no handler is
// set they agree to everything.
type participants struct {
	t        *testing.T
	mu       sync.Mutex
	handlers map[string]handler
	calls    []call
}

func (p *participants) on(endpoint string, h handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers[endpoint] = h
}

func (p *participants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	barrier, err := dtmcli.BarrierFromQuery(r.URL.Query())
	if err != nil {
		p.t.Errorf("called without what dtm's barrier needs: %v", err)
	}
	c := call{name: strings.TrimPrefix(r.URL.Path, "/"), at: time.Now(), body: string(body), header: r.Header, barrier: barrier, attempt: 1}
	p.mu.Lock()
	for _, earlier := range p.calls {
		if earlier.name == c.name {
			c.attempt++
		}
	}
	p.calls = append(p.calls, c)
	h := p.handlers[c.name]
	p.mu.Unlock()
	var result error
	if h != nil {
		result = h(c)
	}
	status, _ := dtmcli.Result2HttpJSON(result)
	w.WriteHeader(status)
}

// names are those of the endpoints that were called, in order.
func (p *participants) names() []string {
	var names []string
	for _, c := range p.all() {
		names = append(names, c.name)
	}
	return names
}

func (p *participants) all() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}
