package saga

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// slots limit the recovered sagas that are under way. Each saga's slots are charged to the
// participants whose branches it calls at the time. A participant may hold perFree slots
// for each free one: one that hangs leaves a quarter to the others. Five that hang one
// after another may leave none.
type slots struct {
	all      int
	epoch    time.Time     // ages count from here
	released chan struct{} // capacity 1: a run has released its slots

	mu     sync.Mutex
	free   int
	shares map[string]*share // by participant
}

// share is what one participant holds.
type share struct {
	slots   int
	runs    int
	started time.Duration // sum of the runs' start times
	// backlogEnd is when the participant will probably have worked off the sagas that were
	// deferred because of it.
	backlogEnd time.Time
}

const (
	// maxRecoveringBytes limits the bodies of recovered sagas under way: a large saga takes
	// several slots.
	maxRecoveringBytes = 64 << 20

	// perFree is how many slots a participant may hold for each free slot.
	perFree = 3

	// slowAfter is the average age of its runs at which a participant is slow. Sagas of
	// other participants wait in memory for slots.
	slowAfter = 500 * time.Millisecond
)

func newSlots(n int) *slots {
	return &slots{all: n, free: n, epoch: time.Now(), released: make(chan struct{}, 1), shares: make(map[string]*share)}
}

// weight returns the slots of a saga with so long a body: never more than all.
func (s *slots) weight(body int) int { return 1 + body*(s.all-1)/maxRecoveringBytes }

// awaitFree returns the number of free slots once there are any, or 0 when stop is closed.
func (s *slots) awaitFree(stop <-chan struct{}) int {
	for {
		s.mu.Lock()
		free := s.free
		s.mu.Unlock()
		if free > 0 {
			return free
		}
		select {
		case <-s.released:
		case <-stop:
			return 0
		}
	}
}

// awaitChange waits until a run has ended, or a participant may have become slow. It
// reports whether stop was closed.
func (s *slots) awaitChange(stop <-chan struct{}) (stopped bool) {
	select {
	case <-s.released:
	case <-time.After(slowAfter / 4):
	case <-stop:
		return true
	}
	return false
}

// take gives a saga its slots if its participants are within their shares. If not, the saga
// must be deferred by delay if a participant is slow or the saga may not wait. Otherwise
// delay is 0, and the saga waits.
func (s *slots) take(c *claimed, mayWait bool) (delay time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if delay, ok := s.checkShares(c, c.participants, s.free, mayWait, now); !ok {
		return delay, false
	}
	switch {
	case c.weight <= s.free:
	case mayWait:
		return 0, false
	default:
		return slowAfter, false
	}
	s.free -= c.weight
	s.charge(c, now)
	return 0, true
}

// checkShares reports whether participants may hold more slots while so many are free. If
// not, delay is 0 if the saga may wait and the participant is not slow.
func (s *slots) checkShares(c *claimed, names []string, free int, mayWait bool, now time.Time) (delay time.Duration, ok bool) {
	for _, name := range names {
		p := s.shares[name]
		if p == nil || p.slots < perFree*free {
			continue
		}
		age := now.Sub(s.epoch) - p.started/time.Duration(p.runs)
		if age < slowAfter && mayWait {
			return 0, false
		}
		// A run takes twice its age: on average it is half over.
		p.backlogEnd = later(p.backlogEnd, now).Add(2 * age * time.Duration(c.weight) / time.Duration(p.slots))
		return max(p.backlogEnd.Sub(now), slowAfter), false
	}
	return 0, true
}

// recharge charges a run's slots to the participants that it calls next, under the same
// conditions as take. If must is set, it ignores their shares.
func (s *slots) recharge(c *claimed, to []string, mayWait, must bool) (delay time.Duration, ok bool) {
	if slices.Equal(to, c.participants) {
		return 0, true // the run keeps its age
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !must {
		added := slices.DeleteFunc(slices.Clone(to), func(name string) bool { return slices.Contains(c.participants, name) })
		if delay, ok := s.checkShares(c, added, s.free+c.weight, mayWait, now); !ok {
			return delay, false
		}
	}
	s.discharge(c)
	c.participants = to
	s.charge(c, now)
	return 0, true
}

// charge adds a run to the shares of its participants.
func (s *slots) charge(c *claimed, now time.Time) {
	for _, name := range c.participants {
		p := s.shares[name]
		if p == nil {
			p = new(share)
			s.shares[name] = p
		}
		p.slots += c.weight
		p.runs++
		p.started += now.Sub(s.epoch)
	}
	c.charged = now
}

// discharge undoes charge.
func (s *slots) discharge(c *claimed) {
	for _, name := range c.participants {
		p := s.shares[name]
		p.slots -= c.weight
		p.runs--
		p.started -= c.charged.Sub(s.epoch)
		if p.runs == 0 {
			delete(s.shares, name)
		}
	}
}

// release undoes take.
func (s *slots) release(c *claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += c.weight
	s.discharge(c)
	signal(s.released)
}

// firstCalls returns the branches that the run will call first.
func (r *run) firstCalls() []store.Branch {
	var events []machine.Event
	if r.timedOut() {
		events = append(events, timeout(r.saga))
	}
	return machine.Decide(&r.plan, r.state, events...).Calls
}

// participants returns the hosts of branches, each once.
func (r *run) participants(branches []store.Branch) (hosts []string) {
	for _, b := range branches {
		if u := r.saga.url(b); u != "" {
			if host := participant(u); !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// participant returns the host and port of a URL, or the whole URL if it has none.
func participant(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return strings.ToLower(u.Host)
	}
	return raw
}
