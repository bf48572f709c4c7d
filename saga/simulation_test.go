package saga_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// TestCoordinator_Simulation runs several coordinators on one store for some
// minutes of a bubble's time while everything goes wrong that may: coordinators
// die, freeze and are closed, the store is away, its answers are lost or late,
// writes arrive after they were given up, branches are slow, undecided or
// refuse. Every call of a branch and every look at the store is checked against
// what must never happen; in the end every saga that was acknowledged has ended.
//
// A seed does not repeat a run, as goroutines are not scheduled by it. For more
// runs, use -count.
func TestCoordinator_Simulation(t *testing.T) {
	t.Parallel()
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%x", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(seed)
				s.run()
				for _, failure := range s.failures {
					t.Error(failure)
				}
			})
		})
	}
}

type simulation struct {
	store  store.Store
	faults int // in a hundred calls of the store
	cfg    saga.Config

	mu       sync.Mutex
	random   *rand.Rand
	calm     bool // nothing goes wrong any more
	outage   time.Time
	sagas    map[string]*simulated
	failures []string

	clients, background sync.WaitGroup
}

// simulated is what is known of one saga.
type simulated struct {
	saga     *saga.Saga
	accepted bool // somebody was told so
	told     saga.Result

	last      store.Record // as last seen
	aborted   bool         // on demand, and whoever demanded it was told so
	calls     []string
	under     map[store.Branch]bool      // of calls, those under way
	busy      map[store.Branch]time.Time // of calls that nobody listens to any more, until when
	begun     map[store.Branch]bool
	succeeded map[store.Branch]bool
	refused   map[store.Branch]bool
	undone    bool // a compensation has begun
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		store:  memstore.New(time.Hour),
		cfg:    saga.DefaultConfig(),
		random: rand.New(rand.NewPCG(seed, 0)),
		sagas:  map[string]*simulated{},
	}
	s.faults = s.n(20)
	s.cfg.Lease, s.cfg.RequestTimeout = time.Second+s.upTo(3*time.Second), 500*time.Millisecond
	s.cfg.RetryInterval, s.cfg.PollInterval = 200*time.Millisecond, 100*time.Millisecond
	s.cfg.MaxRecovering = 1 + s.n(8)
	s.cfg.Commit.Timeout = 700 * time.Millisecond
	s.cfg.Logger = slog.New(slog.DiscardHandler)
	return s
}

// n is a random number below limit.
func (s *simulation) n(limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(limit)
}

// upTo is a random time.
func (s *simulation) upTo(d time.Duration) time.Duration { return time.Duration(s.n(int(d) + 1)) }

// fail notes what must never happen. It needs s.mu.
func (s *simulation) fail(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func (s *simulation) run() {
	nodes := make([]*node, 3)
	for i := range nodes {
		nodes[i] = s.start()
	}
	over := make(chan struct{})
	s.background.Go(func() { s.watch(over) })
	for range 150 {
		time.Sleep(s.upTo(400 * time.Millisecond))
		i := s.n(len(nodes))
		switch dice := s.n(100); {
		case dice < 70:
			s.submit(nodes[i])
		case dice < 76: // dies, and another is started some time later
			nodes[i].die()
			time.Sleep(s.upTo(s.cfg.Lease))
			nodes[i] = s.start()
		case dice < 82: // is closed, with little patience
			ctx, cancel := context.WithTimeout(context.Background(), s.upTo(time.Second))
			nodes[i].Close(ctx)
			cancel()
			nodes[i] = s.start()
		case dice < 90:
			nodes[i].freeze(s.upTo(3 * s.cfg.Lease))
		case dice < 95:
			s.abort(nodes[i])
		default:
			s.mu.Lock()
			s.outage = time.Now().Add(time.Duration(s.random.IntN(int(2 * s.cfg.Lease))))
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	s.clients.Wait()
	time.Sleep(3 * s.cfg.Lease) // until all have thawed, and all calls have arrived
	for left := 3*s.cfg.Lease + time.Minute; left > 0 && s.unfinished(); left -= time.Second {
		time.Sleep(time.Second)
	}
	close(over)
	for _, n := range nodes {
		n.Close(context.Background())
	}
	s.background.Wait()
	s.check()
}

// unfinished reports whether anything is left to be done.
func (s *simulation) unfinished() bool {
	stats, err := s.store.Stats(context.Background())
	return err != nil || stats.Unfinished > 0
}

// submit has a client submit a new saga, one that is there, or another under a
// gid that was accepted; and some wait for its end.
func (s *simulation) submit(to *node) {
	s.mu.Lock()
	next := s.draw()
	known, ok := s.sagas[next.GID]
	mine := !ok
	switch {
	case mine:
		known = &simulated{
			saga: next, under: map[store.Branch]bool{}, busy: map[store.Branch]time.Time{}, begun: map[store.Branch]bool{},
			succeeded: map[store.Branch]bool{}, refused: map[store.Branch]bool{},
		}
		for i, step := range next.Steps {
			if step.Action == "" {
				known.succeeded[store.Action(i)], known.succeeded[store.Compensation(i)] = true, true
			}
		}
		s.sagas[next.GID] = known
	case !known.accepted || s.random.IntN(4) > 0:
		next, mine = known.saga, true
	default:
		next.Steps[0].Payload = "other"
	}
	wait, patience := s.random.IntN(2) == 0, time.Duration(s.random.IntN(int(20*time.Second)))
	s.mu.Unlock()

	s.clients.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var result saga.Result
		var err error
		if wait {
			result, err = to.Run(ctx, next)
		} else {
			err = to.Submit(ctx, next)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case err == nil && !mine:
			s.fail("%s: another saga under its gid was accepted", next.GID)
		case err == nil:
			known.accepted = true
			if wait && known.told.Status != 0 && known.told.Status != result.Status {
				s.fail("%s: ended %v, and then %v", next.GID, known.told.Status, result.Status)
			}
			if wait {
				known.told = result
			}
		case errors.Is(err, store.ErrExists) && mine:
			s.fail("%s: was taken for another", next.GID)
		}
	})
}

// draw makes up a saga. It needs s.mu.
func (s *simulation) draw() *saga.Saga {
	next := &saga.Saga{GID: fmt.Sprint("g", s.random.IntN(60)), Steps: make([]saga.Step, 1+s.random.IntN(5))}
	next.Concurrent = s.random.IntN(2) == 0
	quiet := 0 // so many steps, at the beginning, have no branches to call
	if s.random.IntN(2) == 0 {
		quiet = s.random.IntN(len(next.Steps) + 1)
	}
	for i := range next.Steps {
		if i >= quiet {
			next.Steps[i] = saga.Step{Action: "http://do", Compensate: "http://undo"}
		}
		for j := range i {
			if next.Concurrent && s.random.IntN(3) == 0 {
				next.Steps[i].After = append(next.Steps[i].After, j)
			}
		}
	}
	if s.random.IntN(6) == 0 {
		next.Timeout = time.Duration(1 + s.random.IntN(int(20*time.Second)))
	}
	return next
}

// abort demands that a saga be aborted.
func (s *simulation) abort(to *node) {
	gid := fmt.Sprint("g", s.n(60))
	s.clients.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := to.Abort(ctx, gid, "on demand"); err == nil {
			s.mu.Lock()
			s.sagas[gid].aborted = true
			s.mu.Unlock()
		}
	})
}

// Call plays all branches.
func (n *node) Call(ctx context.Context, c saga.Call) (machine.Outcome, string) {
	if err := n.pass(ctx); err != nil {
		return machine.Unknown, err.Error()
	}
	s := n.simulation
	s.mu.Lock()
	one := s.sagas[c.GID]
	s.begins(n, one, c)
	slow := time.Duration(s.random.IntN(int(200 * time.Millisecond)))
	if !s.calm && s.random.IntN(20) == 0 {
		slow *= 10
	}
	s.mu.Unlock()
	err := sleep(ctx, slow)
	s.mu.Lock()
	delete(one.under, c.Branch)
	one.busy[c.Branch], _ = ctx.Deadline()
	outcome := s.decides(one, c.Branch)
	if !s.calm && s.random.IntN(20) == 0 {
		err = errCut
	}
	s.mu.Unlock()
	if back := n.pass(ctx); err != nil || back != nil {
		return machine.Unknown, fmt.Sprint(err, back)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if outcome == machine.Unknown && s.random.IntN(2) == 0 {
		outcome = machine.Ended
	}
	if outcome != machine.Unknown {
		delete(one.busy, c.Branch)
	}
	return outcome, "said so"
}

// Check implements saga.Caller.
func (*node) Check(string) error { return nil }

// begins checks that the call may begin now.
func (s *simulation) begins(n *node, one *simulated, c saga.Call) {
	i := c.Branch.Step()
	one.calls = append(one.calls, label(c.Branch))
	record, err := s.store.Get(context.Background(), c.GID)
	switch {
	case err != nil:
		s.fail("%s: %s is called, and it is not in the store: %v", c.GID, label(c.Branch), err)
	case record.Owner != n.Owner():
		s.fail("%s: %s is called by %s, and it belongs to %s", c.GID, label(c.Branch), n.Owner(), record.Owner)
	case record.Status.Final():
		s.fail("%s: %s is called when it has ended", c.GID, label(c.Branch))
	case c.Payload != one.saga.Steps[i].Payload:
		s.fail("%s: a branch of another saga is called", c.GID)
	}
	if one.under[c.Branch] {
		s.fail("%s: %s is called twice at a time: %v", c.GID, label(c.Branch), one.calls)
	}
	one.under[c.Branch], one.begun[c.Branch] = true, true
	for _, before := range one.before(i) {
		if !one.succeeded[store.Action(before)] {
			s.fail("%s: %s begins before what it waits for is done: %v", c.GID, label(c.Branch), one.calls)
		}
	}
	if !c.Branch.IsCompensation() {
		if one.undone {
			s.fail("%s: an action begins after a compensation: %v", c.GID, one.calls)
		}
		return
	}
	one.undone = true
	if one.under[store.Action(i)] {
		s.fail("%s: a step is undone while it is being done: %v", c.GID, one.calls)
	}
	if left := time.Until(one.busy[store.Action(i)]); left > 0 {
		s.fail("%s: a step is undone when it may be being done for another %v: %v", c.GID, left, one.calls)
	}
	for later := range one.saga.Steps {
		if slices.Contains(one.before(later), i) && one.begun[store.Action(later)] && !one.succeeded[store.Compensation(later)] {
			s.fail("%s: undone in the wrong order: %v", c.GID, one.calls)
		}
	}
}

// before are the steps that a step waits for.
func (one *simulated) before(i int) []int {
	switch {
	case one.saga.Concurrent:
		return one.saga.Steps[i].After
	case i == 0:
		return nil
	default:
		return []int{i - 1}
	}
}

// decides what a branch answers. Once it has decided it stays with it.
func (s *simulation) decides(one *simulated, b store.Branch) machine.Outcome {
	dice := s.random.IntN(100)
	switch {
	case one.succeeded[b]:
		return machine.Succeeded
	case one.refused[b]:
		return machine.Failed
	case !s.calm && dice < 20:
		return []machine.Outcome{machine.Ongoing, machine.Unknown}[dice%2]
	case b.IsCompensation() && !s.calm && dice < 30:
		return machine.Failed
	case !b.IsCompensation() && dice < 30:
		one.refused[b] = true
		return machine.Failed
	}
	one.succeeded[b] = true
	return machine.Succeeded
}

// watch looks at the store from time to time: nothing there may go back.
func (s *simulation) watch(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(50 * time.Millisecond):
		}
		s.mu.Lock()
		for gid, one := range s.sagas {
			record, err := s.store.Get(context.Background(), gid)
			if err != nil {
				if one.last.GID != "" {
					s.fail("%s: is lost: %v", gid, err)
				}
				continue
			}
			s.compare(one.last, record)
			one.last = record
		}
		s.mu.Unlock()
	}
}

func (s *simulation) compare(was, is store.Record) {
	if was.GID == "" {
		return
	}
	if was.Status != is.Status && !was.Status.CanBecome(is.Status) {
		s.fail("%s: went from %v to %v", is.GID, was.Status, is.Status)
	}
	if is.Epoch < was.Epoch {
		s.fail("%s: epoch went from %d to %d", is.GID, was.Epoch, is.Epoch)
	}
	for b := range was.Marks {
		if was.Marks[b] != byte(store.MarkPending) && was.Marks[b] != is.Marks[b] {
			s.fail("%s: marks went from %s to %s", is.GID, was.Marks, is.Marks)
		}
	}
}

// check judges how it all ended.
func (s *simulation) check() {
	for gid, one := range s.sagas {
		record, err := s.store.Get(context.Background(), gid)
		if err != nil {
			if one.accepted {
				s.fail("%s: was acknowledged, and is not there: %v", gid, err)
			}
			continue
		}
		if !record.Status.Final() {
			s.fail("%s: does not end: %v %s, due %v, %s", gid, record.Status, record.Marks, time.Until(record.Due), record.Note)
			continue
		}
		if one.told.Status != 0 && one.told.Status != record.Status {
			s.fail("%s: ended %v, and its client was told %v", gid, record.Status, one.told.Status)
		}
		failed := record.Status == store.StatusFailed
		mayFail := len(one.refused) > 0 || one.aborted || one.saga.Timeout > 0 || record.Note != ""
		if failed && !mayFail || !failed && (len(one.refused) > 0 || one.aborted) {
			s.fail("%s: %v, and what its branches said is another thing: %v", gid, record.Status, one.calls)
		}
		for i, step := range one.saga.Steps {
			if step.Action == "" {
				continue
			}
			begun, undone := one.begun[store.Action(i)], one.succeeded[store.Compensation(i)]
			// What was about to begin when its coordinator died may be undone, too.
			if begun && failed && !undone || undone && !failed {
				s.fail("%s: %v, and step %d is undone: %v: %v", gid, record.Status, i, undone, one.calls)
			}
		}
	}
}
