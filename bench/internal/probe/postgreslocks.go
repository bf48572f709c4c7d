package probe

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// lookEvery is how often a PostgreSQL is asked who waits. It divides no second,
	// so that what happens once a second is not always seen, nor always missed.
	lookEvery = 97 * time.Millisecond
	// leastLooks are those that an average may be taken of.
	leastLooks = 10
)

// lockWaits adds up how long transactions wait for rows' locks, on a server that
// only says how many do so now: each look stands for the time since the one before.
type lockWaits struct {
	waiting func(context.Context) (int, error)
	cancel  context.CancelFunc
	looking sync.WaitGroup

	looks   int
	seconds float64
	err     error // why there are no more
}

// watchLocks looks until end.
func watchLocks(ctx context.Context, waiting func(context.Context) (int, error)) *lockWaits {
	w := &lockWaits{waiting: waiting}
	ctx = context.WithoutCancel(ctx) // the end stops the ticks, and no look
	ended, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	w.looking.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for last := time.Now(); w.err == nil && ended.Err() == nil; {
			select {
			case <-ended.Done(): // one more, of what is left
			case <-ticker.C:
			}
			last = w.look(ctx, last)
		}
	})
	return w
}

func (w *lockWaits) look(ctx context.Context, last time.Time) time.Time {
	n, err := w.waiting(ctx)
	if err != nil {
		w.err = err
		return last
	}
	now := time.Now()
	w.seconds += float64(n) * now.Sub(last).Seconds()
	w.looks++
	return now
}

func (w *lockWaits) end() {
	w.cancel()
	w.looking.Wait()
}

// addTo adds the seconds, or why they are not known.
func (w *lockWaits) addTo(u *storeUse) {
	switch {
	case w.err != nil:
		u.fail("waits for locks", w.err)
	case w.looks < leastLooks:
		u.fail("waits for locks", fmt.Errorf("it only shows who waits now, and %d looks, one each %v, make no average", w.looks, lookEvery))
	default:
		u.lockTime = &w.seconds
	}
}

// waiting is how many transactions wait for a row's lock now: for another one that
// has written the row to end, or for their turn to wait for it. It shows those of
// roles that the probe's own is a member of, the app's among them, and with
// pg_monitor all. A connection of the pool's takes it, not that of the other looks.
func (p *postgresServer) waiting(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err = p.pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_stat_activity "+
		"WHERE wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple')").Scan(&n)
	return n, err
}
