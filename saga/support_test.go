package saga_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/pebblestore"
	"sagabench/store/redisstore"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// opener opens the store of a test. Each further call gives what another
// process would use beside it; of an engine that allows one process, the same.
type opener func() store.Store

// onStores runs a test on each kind of store. Those on Redis share their servers.
func onStores(t *testing.T, retention time.Duration, test func(t *testing.T, open opener)) {
	t.Helper()
	t.Parallel()
	t.Run("pebble", func(t *testing.T) {
		t.Parallel()
		open := sync.OnceValue(func() store.Store {
			cfg := pebblestore.DefaultConfig()
			cfg.Dir, cfg.Retention = t.TempDir(), retention
			s, err := pebblestore.Open(t.Context(), cfg)
			require.NoError(t, err)
			t.Cleanup(func() { s.Close() })
			return s
		})
		test(t, open)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, redisOpener(t, shared.Server(t), retention))
	})
	t.Run("redis-cluster", func(t *testing.T) {
		t.Parallel()
		test(t, redisOpener(t, shared.Cluster(t).Nodes()[0], retention))
	})
}

func redisOpener(t *testing.T, server *lab.Server, retention time.Duration) opener {
	cfg := redisstore.DefaultConfig()
	cfg.URL, cfg.Prefix, cfg.Retention = server.URL(), "test-"+rand.Text(), retention
	cfg.Timeout = 2 * time.Minute // a claim waits for all masters of a cluster, also on a busy machine
	return func() store.Store {
		s, err := redisstore.Open(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// patient is a configuration under which nothing expires during a test, and
// what is put off goes on soon.
func patient() saga.Config {
	cfg := saga.DefaultConfig()
	cfg.Lease, cfg.RequestTimeout = time.Hour, 20*time.Second
	cfg.RetryInterval, cfg.PollInterval = 20*time.Millisecond, 10*time.Millisecond
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// within is the test's context, for so long.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// newHTTPCaller makes a caller that is closed with the test.
func newHTTPCaller(t testing.TB) *branch.HTTP {
	t.Helper()
	h, err := branch.NewHTTP(branch.HTTPConfig{})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

// serve starts a branch server for one test.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// start gives a coordinator that is closed with the test.
func start(t *testing.T, s store.Store, caller saga.Caller, cfg saga.Config) *saga.Coordinator {
	t.Helper()
	c, err := saga.New(s, caller, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { kill(c) })
	return c
}

// kill closes a coordinator without waiting for its sagas.
func kill(c *saga.Coordinator) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	c.Close(ended)
}

// branches plays all participants, in this process, and keeps a journal.
type branches struct {
	answer func(ctx context.Context, c saga.Call) (machine.Outcome, string) // nil: success

	mu      sync.Mutex
	journal []string // of all calls, in the order in which they began: gid, then as in label
}

func (b *branches) Call(ctx context.Context, c saga.Call) (machine.Outcome, string) {
	b.mu.Lock()
	b.journal = append(b.journal, c.GID+" "+label(c.Branch))
	b.mu.Unlock()
	if b.answer == nil {
		return machine.Succeeded, ""
	}
	return b.answer(ctx, c)
}

func (*branches) Check(url string) error {
	if strings.HasPrefix(url, "bad:") {
		return errors.New("a url nobody can call")
	}
	return nil
}

// of lists the calls for one saga.
func (b *branches) of(gid string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var calls []string
	for _, call := range b.journal {
		if of, what, _ := strings.Cut(call, " "); of == gid {
			calls = append(calls, what)
		}
	}
	return calls
}

// label names a branch: a0 is the first action, c0 its compensation.
func label(b store.Branch) string {
	if b.IsCompensation() {
		return fmt.Sprint("c", b.Step())
	}
	return fmt.Sprint("a", b.Step())
}

// refusing makes participants that refuse the action of one step.
func refusing(step int) *branches {
	return &branches{answer: func(_ context.Context, c saga.Call) (machine.Outcome, string) {
		if c.Branch == store.Action(step) {
			return machine.Failed, "no money left"
		}
		return machine.Succeeded, ""
	}}
}

// blocked are participants who do not answer before goOn is closed.
type blocked struct {
	*branches
	called chan saga.Call // one element per call that waits, as far as there is room
	goOn   chan struct{}
}

// blocking makes participants who block in the given branches, or in all.
func blocking(only ...store.Branch) *blocked {
	b := &blocked{called: make(chan saga.Call, 1000), goOn: make(chan struct{})}
	b.branches = &branches{answer: func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
		if len(only) > 0 && !slices.Contains(only, c.Branch) {
			return machine.Succeeded, ""
		}
		select {
		case b.called <- c:
		default:
		}
		select {
		case <-b.goOn:
			return machine.Succeeded, ""
		case <-ctx.Done(): // as an HTTP call does
			return machine.Unknown, ctx.Err().Error()
		}
	}}
	return b
}

// newSaga makes a saga of so many steps.
func newSaga(steps int) *saga.Saga {
	s := &saga.Saga{GID: saga.NewGID()}
	for i := range steps {
		s.Steps = append(s.Steps, saga.Step{
			Action: fmt.Sprintf("http://branch/%d/do", i), Compensate: fmt.Sprintf("http://branch/%d/undo", i), Payload: fmt.Sprint(i),
		})
	}
	return s
}

// other is a saga under the gid of s that is not s.
func other(s *saga.Saga) *saga.Saga {
	o := &saga.Saga{GID: s.GID, Steps: slices.Clone(s.Steps)}
	o.Steps[0].Payload = "other"
	return o
}

// mustRun runs a saga to its end.
func mustRun(t *testing.T, c *saga.Coordinator, s *saga.Saga) saga.Result {
	t.Helper()
	result, err := c.Run(within(t, patience), s)
	require.NoError(t, err)
	return result
}

// mustWait waits for the end of a saga.
func mustWait(t *testing.T, c *saga.Coordinator, gid string) saga.Result {
	t.Helper()
	result, err := c.Wait(within(t, patience), gid)
	require.NoError(t, err)
	return result
}

func mustGet(t *testing.T, s store.Store, gid string) store.Record {
	t.Helper()
	record, err := s.Get(t.Context(), gid)
	require.NoError(t, err)
	return record
}

// ended is what a client of Run was told.
type ended struct {
	result saga.Result
	err    error
}

// runs has a client run a saga.
func runs(t *testing.T, c *saga.Coordinator, s *saga.Saga) <-chan ended {
	told := make(chan ended, 1)
	go func() {
		result, err := c.Run(t.Context(), s)
		told <- ended{result, err}
	}()
	return told
}

// until polls until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	untilWithin(t, patience, what, cond)
}

func untilWithin(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(limit); !cond(); <-poll.C {
		require.True(t, time.Now().Before(deadline), "not within %v: %s", limit, what)
	}
}

// link is the way to a store, on which things go wrong. Its hooks are called
// for each call; a batch is one.
type link struct {
	store.Store
	before func(ctx context.Context) error // an error keeps the call from the store
	after  func(ctx context.Context) error // an error takes the place of the answer
	saw    func(errs []error)              // what the store answered to Apply
}

func (l *link) Apply(ctx context.Context, changes []store.Change) []error {
	errs := make([]error, len(changes))
	err := l.over(ctx, func() error {
		errs = l.Store.Apply(ctx, changes)
		if l.saw != nil {
			l.saw(errs)
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	return errs
}

func (l *link) Get(ctx context.Context, gid string) (record store.Record, err error) {
	err = l.over(ctx, func() (err error) {
		record, err = l.Store.Get(ctx, gid)
		return err
	})
	return record, err
}

func (l *link) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) (records []store.Record, err error) {
	err = l.over(ctx, func() (err error) {
		records, err = l.Store.ClaimDue(ctx, owner, lease, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

func (l *link) over(ctx context.Context, call func() error) error {
	if l.before != nil {
		if err := l.before(ctx); err != nil {
			return err
		}
	}
	err := call()
	if l.after != nil {
		if lost := l.after(ctx); lost != nil {
			return lost
		}
	}
	return err
}

// claimer is a store that shows what was claimed, with the limit, before it
// hands it over.
type claimer struct {
	store.Store
	saw func(records []store.Record, limit int)
}

func (c *claimer) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	records, err := c.Store.ClaimDue(ctx, owner, lease, limit)
	c.saw(records, limit)
	return records, err
}

// errCut is what a link answers when it is cut.
var errCut = errors.New("connection reset by peer")
