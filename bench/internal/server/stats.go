package server

import (
	"context"
	"sync"
	"time"

	"sagabench/internal/outage"
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

	mu     sync.Mutex
	outage outage.Log
	asked  time.Time
	last   store.Stats
	err    error
}

func (s *stats) get() (store.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.IsZero() || time.Since(s.asked) >= statsTTL {
		// Not the request's context: the result is for other requests too.
		ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
		defer cancel()
		s.last, s.err = s.store.Stats(ctx)
		s.asked = time.Now()
		s.outage.Report(s.err)
	}
	return s.last, s.err
}
