package saga

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sagabench/store"
)

// recovery takes over due sagas: those whose owner has died, and deferred ones.
type recovery struct {
	*Coordinator
	slots *slots
	limit int // of the next claim
}

// recoverDue takes over due sagas until the coordinator is closed.
func (c *Coordinator) recoverDue() {
	r := &recovery{Coordinator: c, slots: newSlots(c.cfg.MaxRecovering), limit: c.cfg.MaxRecovering}
	away := false
	for {
		more, err := r.claim()
		failed := err != nil && !errors.Is(err, store.ErrUnreadable)
		switch {
		case failed:
			c.stats.storeErrors.Add(1)
			if !away { // once, not at every look
				c.log.Warn("looking for due sagas failed; trying again", "error", err)
			}
		case err != nil:
			c.log.Error("a due saga cannot be read and is set aside", "for", store.Quarantine, "error", err)
		}
		if away && !failed {
			c.log.Info("due sagas are found again")
		}
		away = failed
		pause := time.Duration(0)
		if !more {
			// Up to a quarter less, so that coordinators started together do not
			// ask together for ever.
			pause = c.cfg.PollInterval - rand.N(c.cfg.PollInterval/4+1)
		}
		select {
		case <-c.stop:
			return
		case <-c.wake:
		case <-time.After(pause):
		}
	}
}

// claim takes over as many sagas as there are free slots, and reports whether
// more are likely to be due.
func (r *recovery) claim() (more bool, err error) {
	free := r.slots.wait(r.stop)
	if free == 0 {
		return false, nil
	}
	limit := min(free, r.limit)
	leased := time.Now()
	// Not cut off when the coordinator lets go: whom it claimed would be lost to
	// everybody for the length of a lease.
	ctx, cancel := context.WithTimeout(context.Background(), min(r.cfg.Lease/2, r.cfg.Commit.Timeout))
	defer cancel()
	records, err := r.store.ClaimDue(ctx, r.owner, r.cfg.Lease, limit)
	full := bytesOf(records) >= store.MaxPageBytes/2 // a store may count more than we do
	switch {
	case err != nil && len(records) == 0 && !errors.Is(err, store.ErrUnreadable):
		// It may have been too much to ask for in the time, or it was done and its
		// answer lost. Then nobody runs what was claimed until the lease ends, so the
		// next claim risks half as many.
		r.limit = max(1, limit/2)
	case full:
		r.limit = min(2*len(records), r.cfg.MaxRecovering)
	default:
		r.limit = min(2*r.limit, r.cfg.MaxRecovering)
	}
	r.resume(records, leased)
	return len(records) == limit || full, err
}

func bytesOf(records []store.Record) (size int) {
	for i := range records {
		size += len(records[i].Body) + len(records[i].Note)
	}
	return size
}

// resume runs what was claimed as slots come free. What would wait for a slow
// participant is deferred.
func (r *recovery) resume(records []store.Record, leased time.Time) {
	var waiting []*claimed
	for _, record := range records {
		if s := r.read(record, leased); s != nil {
			waiting = append(waiting, s)
		}
	}
	for began := time.Now(); len(waiting) > 0; {
		var left []*claimed
		for _, s := range waiting {
			switch delay, ok := r.slots.take(s, time.Since(began)); {
			case ok:
				r.start(s)
			case delay > 0:
				r.deferTo(s, delay)
			default:
				left = append(left, s)
			}
		}
		waiting = left
		if len(waiting) > 0 && r.slots.changed(r.stop) {
			for _, s := range waiting { // we were closed
				r.background.Go(func() { r.handBack(s.run, atOnce) })
			}
			return
		}
	}
}

// claimed is a saga that waits for slots.
type claimed struct {
	run          *run
	weight       int       // how many slots it takes
	participants []string  // whose branches it calls
	charged      time.Time // since when they are
}

// read gives what was claimed, or nil if that cannot be run. It was not written by
// this version: it is set aside, in sight, for one that can.
func (r *recovery) read(record store.Record, leased time.Time) *claimed {
	info, err := Read(record)
	if err != nil {
		r.log.Error("a due saga cannot be run and is set aside", "gid", record.GID, "for", store.Quarantine, "error", err)
		unread := &run{saga: &Saga{GID: record.GID}, epoch: record.Epoch, state: State{Status: record.Status}}
		r.background.Go(func() { r.handBack(unread, store.Quarantine) })
		return nil
	}
	// By the store's clock, for ours may be another: the claim made it due after
	// the lease.
	age := record.Due.Add(-r.cfg.Lease).Sub(record.Created)
	run := r.newRun(info.Saga, record.Epoch, info.State, leased, age)
	run.record = record.Created
	return &claimed{run: run, weight: r.slots.weight(len(record.Body)), participants: run.participants(run.next())}
}

// start runs a saga that has got its slots.
func (r *recovery) start(s *claimed) {
	s.run.after = func() { r.slots.free(s) }
	s.run.moveOn = func(calls []store.Branch) time.Duration { return r.moveOn(s, calls) }
	begun, err := r.begin(s.run, &r.stats.recovered)
	if begun {
		go r.drive(s.run)
		return
	}
	r.slots.free(s)
	// Either it is still being run here, under a lease that ended while the store
	// was away: that run can write no more, and is about to notice. Or we were
	// closed meanwhile.
	due := r.cfg.RetryInterval
	if err != nil {
		due = atOnce
	}
	r.background.Go(func() { r.handBack(s.run, due) })
}

// deferTo leaves a saga to be claimed after a delay.
func (r *recovery) deferTo(s *claimed, delay time.Duration) {
	r.background.Go(func() { r.handBack(s.run, r.deferral(s.run, delay)) })
}

// deferral is a delay within the bounds of pauses, and no longer than until the saga is
// to be aborted.
func (c *Coordinator) deferral(r *run, delay time.Duration) time.Duration {
	delay = min(max(delay, c.cfg.PollInterval), c.cfg.MaxRetryInterval)
	if left := time.Until(r.abortAt); left > 0 && r.state.Status == store.StatusSubmitted {
		delay = min(delay, left)
	}
	return delay
}

// A run waits a moment for a participant that it goes on to and that is not known to be
// slow: so many times so long.
const (
	moveTries = 5
	movePause = slowAfter / 50
)

// moveOn is asked before a recovered saga calls branches. It returns for how long the
// saga is to be deferred instead, if their participants have their shares. While other
// calls of the saga are under way it is not deferred.
func (r *recovery) moveOn(s *claimed, calls []store.Branch) time.Duration {
	under := s.run.state.Calling
	to := s.run.participants(under)
	for try := 1; ; try++ {
		delay, ok := r.slots.move(s, to, try <= moveTries, len(under) > len(calls))
		switch {
		case ok:
			return 0
		case delay > 0:
			return r.deferral(s.run, delay)
		}
		select {
		case <-time.After(movePause):
		case <-r.ctx.Done(): // which renew finds out
			return 0
		}
	}
}
