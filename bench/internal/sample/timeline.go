package sample

import (
	"context"
	"net/url"
	"time"

	"sagabench/bench/internal/result"
)

// batchesEvery is the number of samples per read of the app servers' metrics, which costs
// a server 1.5 ms of CPU (measured).
const batchesEvery = 5

// watch adds a sample every so often until ctx ends: the cores kept busy since the last
// one, and sometimes the size of batches since it was last read.
func (s *Sampler) watch(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	last, batches := s.readBusy(ctx), s.before.metrics
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.readBusy(ctx)
		if ctx.Err() != nil {
			return // what was read may lack something
		}
		elapsed := now.at.Sub(last.at)
		m := result.Sample{
			AtS:            now.at.Sub(s.before.at).Seconds(),
			LoadCores:      perSecond(difference(last.load, now.load), elapsed),
			AppCores:       perSecond(difference(last.app, now.app), elapsed),
			StoreCores:     perSecond(difference(last.store, now.store), elapsed),
			AppMemoryBytes: memory(ctx, s.app),
		}
		last = now
		if batches != nil && n%batchesEvery == 0 {
			if read := s.readBatches(ctx); read != nil {
				m.Batch = batch(batches, read)
				batches = read
			}
		}
		s.samples = append(s.samples, m)
		if s.cfg.Watch != nil {
			s.cfg.Watch(m)
		}
	}
}

// readBatches returns nil if the servers do not answer before the next sample: they are
// too busy.
func (s *Sampler) readBatches(ctx context.Context) metrics {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Every/2)
	defer cancel()
	only := "?" + url.Values{"name[]": {metricBatches}}.Encode()
	var urls []string
	for _, u := range s.cfg.AppMetrics {
		urls = append(urls, u+only)
	}
	read, err := readMetrics(urls, s.scrape(ctx))
	if err != nil {
		return nil
	}
	return read
}

// batch returns the average number of changes in a call of the store; nil if there was
// no call, or they are not counted.
func batch(before, after metrics) *float64 {
	changes, calls := after.since(before, metricBatches+"_sum"), after.since(before, metricBatches+"_count")
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

// readBusy reads what is cheap to read; what cannot be read is nil.
func (s *Sampler) readBusy(ctx context.Context) busy {
	b := busy{at: time.Now()}
	if own, err := readOwnUse(); err == nil {
		load := own.cpu.Seconds()
		b.load = &load
	}
	b.app, _ = cpuSeconds(ctx, s.app)
	if s.store != nil {
		b.store, _ = s.store.CPU(ctx)
	}
	return b
}
