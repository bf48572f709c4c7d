package saga_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/memstore"
)

func TestSubmit_InvalidSaga_IsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	s := memstore.New(time.Hour)
	var none branches
	c := start(t, s, &none, patient())
	for _, tt := range []struct {
		edit  func(*saga.Saga)
		named string
	}{
		{func(s *saga.Saga) { s.GID = "" }, "gid"},
		{func(s *saga.Saga) { s.GID = strings.Repeat("g", store.MaxGIDBytes+1) }, "gid"},
		{func(s *saga.Saga) { s.GID = "{0}:g" }, "gid"},
		{func(s *saga.Saga) { s.Steps = nil }, "steps: 0"},
		{func(s *saga.Saga) { s.Steps = make([]saga.Step, store.MaxSteps+1) }, "steps: 1001"},
		{func(s *saga.Saga) { s.Steps[1].Action = strings.Repeat("x", saga.MaxURLBytes+1) }, "steps[1].action"},
		{func(s *saga.Saga) { s.Steps[1].Compensate = strings.Repeat("x", saga.MaxURLBytes+1) }, "steps[1].compensate"},
		{func(s *saga.Saga) { s.Steps[1].Payload = strings.Repeat("x", saga.MaxPayloadBytes+1) }, "steps[1].payload"},
		{func(s *saga.Saga) { s.Steps[1].Payload = "\x00" }, "steps[1].payload"},
		{func(s *saga.Saga) { s.Steps[1].Payload = "\xff" }, "steps[1]"},
		{func(s *saga.Saga) { s.Steps[1].Action = "http://branch/\xff" }, "steps[1]"},
		{func(s *saga.Saga) { s.Steps[1].Compensate = "http://branch/\xff" }, "steps[1]"},
		{func(s *saga.Saga) { s.Steps[1].Action = "bad:" }, "steps[1]: a url nobody can call"},
		{func(s *saga.Saga) { s.Steps[1].Compensate = "bad:" }, "steps[1]: a url nobody can call"},
		{func(s *saga.Saga) { // each payload is small enough, the whole is not
			s.Steps = make([]saga.Step, 5)
			for i := range s.Steps {
				s.Steps[i].Payload = strings.Repeat("x", saga.MaxPayloadBytes)
			}
		}, "steps: 5242880 bytes together"},
		{func(s *saga.Saga) { s.Steps[1].After = []int{0} }, "not concurrent"},
		{func(s *saga.Saga) { s.Concurrent, s.Steps[1].After = true, []int{2} }, "steps[1].after: no step 2"},
		{func(s *saga.Saga) { s.Concurrent, s.Steps[1].After = true, []int{-1} }, "steps[1].after: no step -1"},
		{func(s *saga.Saga) { s.Concurrent, s.Steps[1].After = true, []int{0, 0} }, "steps[1].after: names step 0 twice"},
		{func(s *saga.Saga) { s.Concurrent, s.Steps[1].After = true, []int{1} }, "steps[1].after: waits for itself"},
		{func(s *saga.Saga) {
			s.Concurrent, s.Steps[0].After, s.Steps[1].After = true, []int{1}, []int{0}
		}, "steps[0].after: waits for itself"},
		{func(s *saga.Saga) { s.Timeout = -time.Second }, "timeout: -1s"},
		{func(s *saga.Saga) { s.Timeout = saga.MaxTimeout + 1 }, "timeout"},
		{func(s *saga.Saga) { s.RequestTimeout = time.Microsecond }, "request timeout: 1µs"},
		{func(s *saga.Saga) { s.RequestTimeout = saga.MaxRequestTimeout + 1 }, "request timeout"},
		{func(s *saga.Saga) { s.Steps[1].Timeout = -1 }, "steps[1].timeout"},
		{func(s *saga.Saga) { s.RetryInterval = -1 }, "retry interval"},
		{func(s *saga.Saga) { s.RetryInterval = saga.MaxRetryInterval + 1 }, "retry interval"},
		{func(s *saga.Saga) { s.RetryLimit = -1 }, "retry limit: -1"},
		{func(s *saga.Saga) { s.Custom = strings.Repeat("x", saga.MaxCustomBytes+1) }, "custom_data"},
		{func(s *saga.Saga) { s.Custom = "\xff" }, "custom_data"},
		{func(s *saga.Saga) { s.Headers = map[string]string{"": "x"} }, `branch_headers: "" is no`},
		{func(s *saga.Saga) { s.Headers = map[string]string{"a b": "x"} }, `branch_headers: "a b" is no`},
		{func(s *saga.Saga) { s.Headers = map[string]string{"Host": "x"} }, "branch_headers: Host"},
		{func(s *saga.Saga) { s.Headers = map[string]string{"A": "x\r\nB: y"} }, "branch_headers: the value of A"},
		{func(s *saga.Saga) { s.Headers = map[string]string{"A": strings.Repeat("x", saga.MaxHeaderBytes)} }, "branch_headers: 8193 bytes"},
		{func(s *saga.Saga) {
			s.Headers = map[string]string{}
			for i := range saga.MaxHeaders + 1 {
				s.Headers[fmt.Sprint("h", i)] = ""
			}
		}, "branch_headers: 65"},
	} {
		invalid := newSaga(2)
		tt.edit(invalid)
		err := c.Submit(t.Context(), invalid)
		require.ErrorIs(t, err, store.ErrInvalid, tt.named)
		require.ErrorContains(t, err, tt.named)
		require.NotErrorIs(t, err, saga.ErrUnknown)
		_, err = c.Run(t.Context(), invalid)
		require.ErrorIs(t, err, store.ErrInvalid, tt.named)
	}
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, stats)
	require.Empty(t, none.journal)
}

func TestSubmit_LimitsThemselves_AreAccepted(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		all := &branches{}
		c := start(t, open(), all, patient())
		s := newSaga(2)
		s.GID = strings.Repeat("g", store.MaxGIDBytes)
		s.Steps[0].Action = "http://branch/" + strings.Repeat("x", saga.MaxURLBytes-len("http://branch/"))
		s.Steps[0].Payload = strings.Repeat("ä", saga.MaxPayloadBytes/2)
		s.Steps[1].Payload = strings.Repeat("<", saga.MaxPayloadBytes/4) // six bytes each in JSON
		require.Equal(t, store.StatusSucceeded, mustRun(t, c, s).Status)
		require.Equal(t, []string{"a0", "a1"}, all.of(s.GID))
	})
}

func TestNew_InvalidConfig_IsRefused(t *testing.T) {
	t.Parallel()
	for named, edit := range map[string]func(*saga.Config){
		"request timeout": func(c *saga.Config) { c.RequestTimeout = 0 },
		"retry interval":  func(c *saga.Config) { c.RetryInterval = time.Microsecond },
		"poll interval":   func(c *saga.Config) { c.PollInterval = -time.Second },
		"lease":           func(c *saga.Config) { c.Lease = 2*c.RequestTimeout - 1 },
		"max recovering":  func(c *saga.Config) { c.MaxRecovering = 0 },
		"max batch":       func(c *saga.Config) { c.Commit.MaxBatch = 0 },
		"flushers":        func(c *saga.Config) { c.Commit.Flushers = 0 },
	} {
		cfg := saga.DefaultConfig()
		edit(&cfg)
		_, err := saga.New(memstore.New(0), &branches{}, cfg)
		require.ErrorIs(t, err, store.ErrInvalid, named)
		require.ErrorContains(t, err, named)
	}
}

// What is in the store and cannot be read is left where it is, and does not
// keep others from being run.
func TestRecovery_BodyThatCannotBeDecoded_IsLeftAlone(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		s := open()
		well := newSaga(2)
		var bad []string
		for i, body := range []string{"", "not JSON", `{"steps":7}`, `{"steps":[{}]}`, "null"} { // the marks are for two steps
			gid := fmt.Sprint("bad", i)
			bad = append(bad, gid)
			create(t, s, gid, body, 2)
		}
		create(t, s, well.GID, `{"steps":[{"action":"http://branch"},{"action":"http://branch"}]}`, 2)
		all := &branches{}
		c := start(t, s, all, patient())
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, well.GID).Status)
		for _, gid := range bad {
			require.Equal(t, store.StatusSubmitted, mustGet(t, s, gid).Status)
			require.Empty(t, all.of(gid))
		}
		require.EqualValues(t, 1, settled(t, c).Recovered)
	})
}

// create puts a saga into a store, due at once.
func create(t *testing.T, s store.Store, gid, body string, steps int) {
	t.Helper()
	errs := s.Apply(t.Context(), []store.Change{&store.Create{GID: gid, Body: []byte(body), Steps: steps, Owner: "dead"}})
	require.NoError(t, errs[0])
}

// What becomes too large only as JSON is refused before it is encoded. Not parallel: it
// looks at what the process allocates.
func TestSubmit_ASagaThatGrowsAsJSON_CostsNothing(t *testing.T) {
	s := newSaga(4)
	for i := range s.Steps {
		s.Steps[i].Payload = `"` + strings.Repeat("<", saga.MaxPayloadBytes-1000) + `"`
	}
	c := start(t, memstore.New(time.Hour), blocking(), patient())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := c.Submit(t.Context(), s)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
