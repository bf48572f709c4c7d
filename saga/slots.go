package saga

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sagabench/store"
)

// slots bound the recovered sagas that are under way, and share that out among the
// participants whose branches they call at the time. A participant may hold three times as many as are
// left free. So one that hangs leaves a quarter to the others. Five that hang, one
// after another, may leave nothing.
type slots struct {
	all   int
	began time.Time // from which ages are counted
	ended chan struct{}

	mu   sync.Mutex
	left int
	of   map[string]*share
}

// share is what one participant holds.
type share struct {
	slots int
	runs  int
	since time.Duration // sum over the runs of when they began
	// next is when the participant will have worked off what was deferred because
	// of it.
	next time.Time
}

const (
	// maxRecoveringBytes bounds the bodies of recovered sagas under way: a large one
	// takes the slots of several.
	maxRecoveringBytes = 64 << 20

	// perFree is how many slots a participant may hold for each that is free.
	perFree = 3

	// slowAfter is when a participant counts as slow: its runs have been under way for
	// so long on average. Further sagas of others wait in memory for a run to end.
	slowAfter = 500 * time.Millisecond
)

func newSlots(n int) *slots {
	return &slots{all: n, left: n, began: time.Now(), ended: make(chan struct{}, 1), of: make(map[string]*share)}
}

// weight is how many slots a saga takes that has so long a body. All slots are
// more than any.
func (s *slots) weight(body int) int { return 1 + body*(s.all-1)/maxRecoveringBytes }

// wait returns how many slots are free once there are any, or 0 when stop is closed.
func (s *slots) wait(stop <-chan struct{}) int {
	for {
		s.mu.Lock()
		left := s.left
		s.mu.Unlock()
		if left > 0 {
			return left
		}
		select {
		case <-s.ended:
		case <-stop:
			return 0
		}
	}
}

// changed waits until a run has ended, or may have become slow. It reports whether
// stop was closed.
func (s *slots) changed(stop <-chan struct{}) (stopped bool) {
	select {
	case <-s.ended:
	case <-time.After(slowAfter / 4):
	case <-stop:
		return true
	}
	return false
}

// take gives a saga its slots if its participants are within their shares. If not,
// it is to be deferred when a participant is slow or it has waited long enough, and
// to wait (delay is 0) otherwise.
func (s *slots) take(c *claimed, waited time.Duration) (delay time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, name := range c.participants {
		if delay, ok := s.within(name, s.left, c.weight, waited < slowAfter, now); !ok {
			return delay, false
		}
	}
	switch {
	case c.weight <= s.left:
	case waited < slowAfter:
		return 0, false
	default:
		return slowAfter, false
	}
	s.left -= c.weight
	s.charge(c, now)
	return 0, true
}

// within reports whether a participant may hold so many slots more, when so many are
// left. If not, the saga is to wait if it may and the participant is not slow, and
// otherwise to be deferred.
func (s *slots) within(name string, left, weight int, mayWait bool, now time.Time) (delay time.Duration, ok bool) {
	p := s.of[name]
	if p == nil || p.slots < perFree*left {
		return 0, true
	}
	age := now.Sub(s.began) - p.since/time.Duration(p.runs)
	if age < slowAfter && mayWait {
		return 0, false
	}
	// At any moment a run is about half over.
	p.next = later(p.next, now).Add(2 * age * time.Duration(weight) / time.Duration(p.slots))
	return max(p.next.Sub(now), slowAfter), false
}

// move is take for a run that goes on to other participants, with the slots it has. If
// it must, it goes on even beyond their shares.
func (s *slots) move(c *claimed, to []string, mayWait, must bool) (delay time.Duration, ok bool) {
	if slices.Equal(to, c.participants) {
		return 0, true // and they count as long under way as before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, name := range to {
		if must || slices.Contains(c.participants, name) {
			continue
		}
		if delay, ok := s.within(name, s.left+c.weight, c.weight, mayWait, now); !ok {
			return delay, false
		}
	}
	s.discharge(c)
	c.participants = to
	s.charge(c, now)
	return 0, true
}

// charge counts a run among those of its participants.
func (s *slots) charge(c *claimed, now time.Time) {
	for _, name := range c.participants {
		p := s.of[name]
		if p == nil {
			p = new(share)
			s.of[name] = p
		}
		p.slots += c.weight
		p.runs++
		p.since += now.Sub(s.began)
	}
	c.charged = now
}

// discharge is charge's counterpart.
func (s *slots) discharge(c *claimed) {
	for _, name := range c.participants {
		p := s.of[name]
		p.slots -= c.weight
		p.runs--
		p.since -= c.charged.Sub(s.began)
		if p.runs == 0 {
			delete(s.of, name)
		}
	}
}

// free is take's counterpart.
func (s *slots) free(c *claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left += c.weight
	s.discharge(c)
	select {
	case s.ended <- struct{}{}:
	default: // somebody is about to look
	}
}

// next are the branches that the run will call first.
func (r *run) next() []store.Branch {
	var events []Event
	if r.timedOut() {
		events = append(events, timeout(r.saga))
	}
	return Decide(&r.plan, r.state, events...).Calls
}

// participants are the hosts of branches, each once.
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

// participant is who answers at a URL: its host and port, or, of what is no HTTP,
// the URL.
func participant(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return strings.ToLower(u.Host)
	}
	return raw
}
