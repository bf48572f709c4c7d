package probe

import (
	"context"
	"time"
)

// Moment is a point of the timeline: how many cores were kept busy on average
// since the one before. What is nil was not measured.
type Moment struct {
	At                              time.Duration // since Begin
	LoadCores, AppCores, StoreCores *float64
	AppMemory                       *int64 // bytes, resident
}

// watch adds a moment every so often until ctx ends.
func (s *Sampler) watch(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	last := s.lookBusy(ctx)
	for {
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
		s.moments = append(s.moments, Moment{
			At:         now.at.Sub(s.before.at),
			LoadCores:  cores(last.load, now.load, elapsed),
			AppCores:   cores(last.app, now.app, elapsed),
			StoreCores: cores(last.store, now.store, elapsed),
			AppMemory:  memory(ctx, s.app),
		})
		last = now
	}
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
