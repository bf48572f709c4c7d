package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/store"
)

const (
	statsTimeout = time.Second
	statsKept    = time.Second
)

// stats asks the store how it stands, at most once per statsKept however many
// ask: scrapes and probes must not become a load of their own.
type stats struct {
	store store.Store
	log   *slog.Logger

	mu    sync.Mutex
	asked time.Time
	last  store.Stats
	err   error
}

func (s *stats) get() (store.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.IsZero() || time.Since(s.asked) >= statsKept {
		// Not the context of whoever asks: the answer is for others too.
		ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
		defer cancel()
		away := s.err != nil
		s.last, s.err = s.store.Stats(ctx)
		s.asked = time.Now()
		switch {
		case s.err != nil && !away: // once, not as often as it is asked
			s.log.Warn("the store does not answer", "error", s.err)
		case s.err == nil && away:
			s.log.Info("the store answers again")
		}
	}
	return s.last, s.err
}

// health answers whether the store does. It is open to all: it does not say where
// the store is.
func (s *stats) health(c *gin.Context) {
	if _, err := s.get(); err != nil {
		answer(c, http.StatusServiceUnavailable, reply{Message: "the store does not answer; the server's log has the details"})
		return
	}
	write(c, http.StatusOK, []byte(`{"message":"ok"}`))
}
