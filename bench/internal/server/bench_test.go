package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/memstore"
)

// inFlight is how many requests the benchmarks keep under way, per core.
const inFlight = 64

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// BenchmarkRunSaga is a request without its connection: the handler, the
// coordinator and the store.
func BenchmarkRunSaga(b *testing.B) {
	for _, engine := range []struct {
		name string
		open func() store.Store
	}{
		{"memory", func() store.Store { return memstore.New(0) }},
		{"pebble", func() store.Store { return testkit.OpenPebble(b) }},
		{"redis", func() store.Store { return testkit.OpenRedis(b, labtest.Start(b, lab.Redis, lab.Config{})) }},
	} {
		b.Run(engine.name, func(b *testing.B) {
			at := start(b, engine.open())
			handler := at.server.http.Handler
			b.ReportAllocs()
			b.SetParallelism(inFlight)
			b.RunParallel(func(pb *testing.PB) {
				request := httptest.NewRequest(http.MethodGet, at.server.URL()+"/bench/saga?steps=2", nil)
				for pb.Next() {
					w := &sink{header: http.Header{}}
					handler.ServeHTTP(w, request)
					if w.status != http.StatusOK {
						b.Error("status", w.status)
					}
				}
			})
		})
	}
}

// BenchmarkCoordinator is BenchmarkRunSaga/memory without the handler.
func BenchmarkCoordinator(b *testing.B) {
	c, err := saga.New(memstore.New(0), nil, saga.DefaultConfig())
	require.NoError(b, err)
	b.Cleanup(func() { c.Close(b.Context()) })
	b.ReportAllocs()
	b.SetParallelism(inFlight)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := c.Run(b.Context(), &saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, 2)})
			if err != nil {
				b.Error(err)
			}
		}
	})
}
