package simserver

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Handler returns the server in real time. It answers any request like a bench server
// that ran a saga. Its time begins with the first request.
func (l Law) Handler(seed uint64) http.Handler {
	return &handler{queue: l.NewQueue(seed)}
}

type handler struct {
	mu    sync.Mutex
	queue *Queue
	began time.Time
	n     int
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, answer := h.arrive(time.Now())
	select {
	case <-time.After(time.Until(answer)):
		fmt.Fprintf(w, `{"dtm_result":"SUCCESS","gid":"simulated-%d"}`, n)
	case <-r.Context().Done():
	}
}

func (h *handler) arrive(now time.Time) (n int, answer time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		h.began = now
	}
	h.n++
	return h.n, h.began.Add(h.queue.Arrive(now.Sub(h.began)))
}
