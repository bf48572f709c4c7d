package probe

import (
	"context"
	"net/url"
	"time"

	"sagabench/bench/internal/result"
)

// batchesEvery is how many moments there are to one look at the app servers' metrics,
// which costs a server 1.5 ms of CPU (measured).
const batchesEvery = 5

// watch adds a moment every so often until ctx ends: how many cores were kept busy
// since the one before, and sometimes how large the batches were since they were
// looked at.
func (s *Sampler) watch(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	last, batches := s.lookBusy(ctx), s.before.metrics
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.lookBusy(ctx)
		if ctx.Err() != nil {
			return // half a look is none
		}
		elapsed := now.at.Sub(last.at).Seconds()
		m := result.Sample{
			AtS:            now.at.Sub(s.before.at).Seconds(),
			LoadCores:      cores(last.load, now.load, elapsed),
			AppCores:       cores(last.app, now.app, elapsed),
			StoreCores:     cores(last.store, now.store, elapsed),
			AppMemoryBytes: memory(ctx, s.app),
		}
		last = now
		if batches != nil && n%batchesEvery == 0 {
			if read := s.lookBatches(ctx); read != nil {
				m.Batch = batch(batches, read)
				batches = read
			}
		}
		s.moments = append(s.moments, m)
		if s.cfg.Watch != nil {
			s.cfg.Watch(m)
		}
	}
}

// lookBatches is nil when the servers do not answer before the next moment: then
// they have better to do.
func (s *Sampler) lookBatches(ctx context.Context) *appMetrics {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Every/2)
	defer cancel()
	only := "?" + url.Values{"name[]": {metricBatches}}.Encode()
	var urls []string
	for _, u := range s.cfg.AppMetrics {
		urls = append(urls, u+only)
	}
	read, err := readMetrics(ctx, urls, s.cfg.AppToken)
	if err != nil {
		return nil
	}
	return read
}

// batch is how many changes a call of the store wrote on average; nil: there was
// none, or they are not counted.
func batch(before, after *appMetrics) *float64 {
	changes, calls := difference(before.changes, after.changes), difference(before.calls, after.calls)
	if changes == nil || calls == nil || *calls == 0 {
		return nil
	}
	*changes /= *calls
	return changes
}

// busy is CPU seconds at one time.
type busy struct {
	at               time.Time
	load, app, store *float64
}

// lookBusy reads what is cheap to read; what cannot be read is nil.
func (s *Sampler) lookBusy(ctx context.Context) busy {
	b := busy{at: time.Now()}
	if own, err := readOwnUse(); err == nil {
		load := own.cpu.Seconds()
		b.load = &load
	}
	if len(s.app) > 0 {
		b.app, _ = cpuSeconds(ctx, s.app)
	}
	if s.store != nil {
		b.store, _ = s.store.cpu(ctx)
	}
	return b
}

func cores(before, after *float64, elapsed float64) *float64 {
	d := difference(before, after)
	if d == nil || elapsed <= 0 {
		return nil
	}
	*d /= elapsed
	return d
}
