package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store/memstore"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// BenchmarkSubmit is a submit without its connection, over a store that costs
// next to nothing: what it takes beyond BenchmarkCoordinator is the API's.
func BenchmarkSubmit(b *testing.B) {
	for _, wait := range []bool{false, true} {
		b.Run(fmt.Sprintf("wait=%t", wait), func(b *testing.B) {
			s := memstore.New(0)
			c := newCoordinator(b, s)
			routes := http.NewServeMux()
			New(c, s, Config{}).Register(routes.HandleFunc)
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					body := fmt.Sprintf(`{"gid":%q,"trans_type":"saga","concurrent":false,"wait_result":%t,`+
						`"steps":[{"action":"","compensate":""},{"action":"","compensate":""}],`+
						`"payloads":["{\"amount\":30}","{\"amount\":30}"],"protocol":""}`, saga.NewGID(), wait)
					r := httptest.NewRequest(http.MethodPost, "/api/dtmsvr/submit", io.NopCloser(strings.NewReader(body)))
					w := &sink{header: http.Header{}}
					routes.ServeHTTP(w, r)
					if w.status != http.StatusOK {
						b.Error("status", w.status)
					}
				}
			})
		})
	}
}

// BenchmarkCoordinator is BenchmarkSubmit with wait=true, less the API.
func BenchmarkCoordinator(b *testing.B) {
	c := newCoordinator(b, memstore.New(0))
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := c.Run(b.Context(), &saga.Saga{GID: saga.NewGID(), Steps: []saga.Step{{Payload: `{"amount":30}`}, {Payload: `{"amount":30}`}}})
			if err != nil {
				b.Error(err)
			}
		}
	})
}

func newCoordinator(b *testing.B, s *memstore.Store) *saga.Coordinator {
	caller, err := branch.NewHTTP(branch.HTTPConfig{})
	require.NoError(b, err)
	cfg := saga.DefaultConfig()
	cfg.PollInterval = time.Hour
	c, err := saga.New(s, caller, cfg)
	require.NoError(b, err)
	b.Cleanup(func() { c.Close(b.Context()) })
	return c
}
