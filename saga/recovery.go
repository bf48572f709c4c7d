package saga

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"sagabench/internal/outage"
	"sagabench/saga/machine"
	"sagabench/store"
)

// recovery takes over due sagas: deferred sagas, and those whose owner has died.
type recovery struct {
	*Coordinator
	slots     *slots
	claimSize int // of the next claim, in sagas
}

// recoverDue takes over due sagas until the coordinator is closed.
func (c *Coordinator) recoverDue() {
	r := &recovery{Coordinator: c, slots: newSlots(c.cfg.MaxRecovering), claimSize: c.cfg.MaxRecovering}
	log := outage.Log{Logger: c.log, Failed: "claiming due sagas failed; trying again", Recovered: "due sagas are claimed again"}
	for {
		more, err := r.claim()
		if errors.Is(err, store.ErrUnreadable) {
			c.log.Error("a due saga cannot be read and is quarantined", "for", store.Quarantine, "error", err)
			err = nil
		}
		if err != nil {
			atomic.AddInt64(&c.stats.StoreErrors, 1)
		}
		log.Report(err)
		pause := time.Duration(0)
		if !more {
			// Up to a quarter less, so that coordinators started together do not poll together
			// for ever.
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

// claim takes over as many sagas as there are free slots. It reports whether more sagas
// are probably due.
func (r *recovery) claim() (more bool, err error) {
	free := r.slots.awaitFree(r.stop)
	if free == 0 {
		return false, nil
	}
	size := min(free, r.claimSize)
	leased := time.Now()
	// Not cut off when the coordinator stops: nobody would run what it claimed until the
	// lease ends.
	ctx, cancel := context.WithTimeout(context.Background(), min(r.cfg.Lease/2, r.cfg.Commit.Timeout))
	defer cancel()
	records, err := r.store.ClaimDue(ctx, r.owner, r.cfg.Lease, size)
	full := bytesOf(records) >= store.MaxPageBytes/2 // the store may count more bytes than we do
	switch {
	case err != nil && len(records) == 0 && !errors.Is(err, store.ErrUnreadable):
		// The claim may have been too large for its timeout, or its answer was lost. Then
		// nobody runs what was claimed until the lease ends. So the next claim risks half.
		r.claimSize = max(1, size/2)
	case full:
		r.claimSize = min(2*len(records), r.cfg.MaxRecovering)
	default:
		r.claimSize = min(2*r.claimSize, r.cfg.MaxRecovering)
	}
	r.resume(records, leased)
	return len(records) == size || full, err
}

func bytesOf(records []store.Record) (size int) {
	for i := range records {
		size += len(records[i].Body) + len(records[i].Note)
	}
	return size
}

// resume runs claimed sagas as slots become free, and defers those that would wait for a
// slow participant.
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
			switch delay, ok := r.slots.take(s, time.Since(began) < slowAfter); {
			case ok:
				r.run(s)
			case delay > 0:
				r.background.Go(func() { r.releaseLease(s.run, r.deferral(s.run, delay)) })
			default:
				left = append(left, s)
			}
		}
		waiting = left
		if len(waiting) > 0 && r.slots.awaitChange(r.stop) {
			for _, s := range waiting { // the coordinator is closed
				r.background.Go(func() { r.releaseLease(s.run, dueNow) })
			}
			return
		}
	}
}

// claimed is a saga that recovery has claimed.
type claimed struct {
	run          *run
	weight       int       // in slots
	participants []string  // charged for its slots: those whose branches it calls
	charged      time.Time // since when
}

// read returns a claimed saga, or nil if it cannot be run: another version has written it.
// It is then quarantined, for that version, and logged.
func (r *recovery) read(record store.Record, leased time.Time) *claimed {
	info, err := Read(record)
	if err != nil {
		r.log.Error("a due saga cannot be run and is quarantined", "gid", record.GID, "for", store.Quarantine, "error", err)
		unread := &run{saga: &Saga{GID: record.GID}, epoch: record.Epoch, state: machine.State{Status: record.Status}}
		r.background.Go(func() { r.releaseLease(unread, store.Quarantine) })
		return nil
	}
	// The age is by the store's clock, since ours may differ. The claim has set Due to the
	// end of the lease.
	age := record.Due.Add(-r.cfg.Lease).Sub(record.Created)
	run := r.newRun(info.Saga, record.Epoch, info.State, leased, age)
	run.recordCreated = record.Created
	return &claimed{run: run, weight: r.slots.weight(len(record.Body)), participants: run.participants(run.firstCalls())}
}

// run starts a saga that has taken its slots.
func (r *recovery) run(s *claimed) {
	s.run.onFinish = func() { r.slots.release(s) }
	s.run.beforeCalls = func(calls []store.Branch) time.Duration { return r.chargeNext(s, calls) }
	started, err := r.start(s.run, &r.stats.Recovered)
	if started {
		go r.drive(context.Background(), s.run, true)
		return
	}
	r.slots.release(s)
	// Either the coordinator was closed meanwhile, or the saga still runs here, under a lease
	// that ended while the store was away. That run can write no more, and will notice.
	due := r.cfg.RetryInterval
	if err != nil {
		due = dueNow
	}
	r.background.Go(func() { r.releaseLease(s.run, due) })
}

// deferral returns a delay within the bounds of pauses, and not beyond the saga's timeout.
func (c *Coordinator) deferral(r *run, delay time.Duration) time.Duration {
	delay = min(max(delay, c.cfg.PollInterval), c.cfg.MaxRetryInterval)
	if left := time.Until(r.abortAt); left > 0 && r.state.Status == store.StatusSubmitted {
		delay = min(delay, left)
	}
	return delay
}

// How often, and how long each time, a run waits for a participant that it goes on to and
// that is not known to be slow.
const (
	recharges     = 5
	rechargePause = slowAfter / 50
)

// chargeNext charges the participants that a recovered saga calls next, instead of the
// previous ones. It returns how long the saga must be deferred instead, if one of them has
// its share. A saga with other calls under way is not deferred.
func (r *recovery) chargeNext(s *claimed, calls []store.Branch) time.Duration {
	calling := s.run.state.Calling
	participants := s.run.participants(calling)
	for try := 1; ; try++ {
		delay, ok := r.slots.recharge(s, participants, try <= recharges, len(calling) > len(calls))
		switch {
		case ok:
			return 0
		case delay > 0:
			return r.deferral(s.run, delay)
		}
		select {
		case <-time.After(rechargePause):
		case <-r.ctx.Done(): // which renew finds out
			return 0
		}
	}
}
