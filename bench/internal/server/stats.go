package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sagabench/store"
)

const (
	statsTimeout = time.Second
	statsTTL     = time.Second
)

// stats caches the store's Stats for statsTTL: scrapes and probes must not be a load of
// their own.
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
	if s.asked.IsZero() || time.Since(s.asked) >= statsTTL {
		// Not the request's context: the result is for other requests too.
		ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
		defer cancel()
		failed := s.err != nil
		s.last, s.err = s.store.Stats(ctx)
		s.asked = time.Now()
		switch {
		case s.err != nil && !failed: // once per outage
			s.log.Warn("the store does not answer", "error", s.err)
		case s.err == nil && failed:
			s.log.Info("the store answers again")
		}
	}
	return s.last, s.err
}
