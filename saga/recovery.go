package saga

import (
	"context"
	"math/rand/v2"
	"time"

	"sagabench/store"
)

// recoverDue takes over due sagas until the coordinator is closed: those whose
// owner has died, and those that were put off.
func (c *Coordinator) recoverDue() {
	slots := make(chan struct{}, c.cfg.MaxRecovering)
	away := false
	for {
		full, err := c.claim(slots)
		if err != nil {
			c.stats.storeErrors.Add(1)
		}
		switch {
		case err != nil && !away: // once, not at every look
			c.log.Warn("looking for due sagas failed; trying again", "error", err)
		case err == nil && away:
			c.log.Info("due sagas are found again")
		}
		away = err != nil
		pause := time.Duration(0)
		if !full {
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
func (c *Coordinator) claim(slots chan struct{}) (full bool, err error) {
	select {
	case slots <- struct{}{}: // wait until there is room for one
		<-slots
	case <-c.stop:
		return false, nil
	}
	free := cap(slots) - len(slots)
	leased := time.Now()
	// Not cut off when the coordinator lets go: whom it claimed would be lost to
	// everybody for the length of a lease.
	ctx, cancel := context.WithTimeout(context.Background(), min(c.cfg.Lease/2, c.cfg.Commit.Timeout))
	defer cancel()
	records, err := c.store.ClaimDue(ctx, c.owner, c.cfg.Lease, free)
	for _, record := range records {
		c.resume(record, leased, slots)
	}
	return len(records) == free, err
}

func (c *Coordinator) resume(record store.Record, leased time.Time, slots chan struct{}) {
	info, err := Read(record)
	if err != nil {
		// It was not written by this version. The lease keeps it from being
		// claimed again at once; it stays unfinished, and so in sight.
		c.log.Error("cannot run a saga", "gid", record.GID, "error", err)
		return
	}
	// By the store's clock, for ours may be another: the claim made it due after
	// the lease.
	age := record.Due.Add(-c.cfg.Lease).Sub(record.Created)
	r := c.newRun(info.Saga, record.Epoch, info.State, leased, age)
	r.after = func() { <-slots }
	slots <- struct{}{} // there is room: nobody else fills slots
	begun, err := c.begin(r, &c.stats.recovered)
	if begun {
		go c.drive(r)
		return
	}
	<-slots
	// Either it is still being run here, under a lease that ended while the store
	// was away: that run can write no more, and is about to notice. Or we were
	// closed meanwhile.
	due := c.cfg.RetryInterval
	if err != nil {
		due = atOnce
	}
	c.background.Go(func() { c.handBack(r, due) })
}
