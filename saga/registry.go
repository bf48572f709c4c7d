package saga

import (
	"slices"
	"sync"
)

// registry knows which sagas run in this process and who waits for their end.
type registry struct {
	mu    sync.Mutex
	sagas map[string]*entry
}

type entry struct {
	run     *run // nil if it does not run here
	waiters []chan end
}

func newRegistry() registry { return registry{sagas: make(map[string]*entry)} }

// begin reports whether the saga may be run: not if it is running already, as
// two runs under one epoch would not be kept apart by the store.
func (g *registry) begin(r *run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry(r.saga.GID)
	if e.run != nil {
		return false
	}
	e.run = r
	return true
}

// running reports whether the saga runs here now. Once it does not, its end, if
// it came here, has reached all who wait.
func (g *registry) running(gid string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.sagas[gid]
	return ok && e.run != nil
}

// look has the run of a saga, if it runs here, look at what was made of it.
func (g *registry) look(gid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.sagas[gid]; ok && e.run != nil {
		select {
		case e.run.looked <- struct{}{}:
		default: // it will anyway
		}
	}
}

// end is begin's counterpart. If the saga has ended, or is gone, all who wait are
// told.
func (g *registry) end(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry(r.saga.GID)
	e.run = nil
	if r.gone != nil || r.state.Status.Final() {
		told := end{err: r.gone}
		if r.gone == nil {
			told.result = resultOf(r.state)
		}
		for _, w := range e.waiters {
			w <- told
		}
		e.waiters = nil
	}
	g.tidy(r.saga.GID, e)
}

// wait gives a channel that receives the result if the saga ends here.
func (g *registry) wait(gid string) chan end {
	w := make(chan end, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry(gid)
	e.waiters = append(e.waiters, w)
	return w
}

// forget is wait's counterpart.
func (g *registry) forget(gid string, w chan end) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.sagas[gid]; ok {
		if i := slices.Index(e.waiters, w); i >= 0 {
			e.waiters = slices.Delete(e.waiters, i, i+1)
		}
		g.tidy(gid, e)
	}
}

func (g *registry) entry(gid string) *entry {
	e, ok := g.sagas[gid]
	if !ok {
		e = new(entry)
		g.sagas[gid] = e
	}
	return e
}

func (g *registry) tidy(gid string, e *entry) {
	if e.run == nil && len(e.waiters) == 0 {
		delete(g.sagas, gid)
	}
}
