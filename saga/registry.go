package saga

import (
	"slices"
	"sync"
)

// registry holds the runs of this process and the clients that wait for their ends.
type registry struct {
	mu    sync.Mutex
	sagas map[string]*entry
}

type entry struct {
	run     *run // nil if the saga does not run here
	waiters []chan end
}

// end is what clients that wait for a saga receive.
type end struct {
	result Result
	err    error // wraps ErrEndUnknown, or nil
}

// add reports false if the saga runs already: the store would not keep two runs under one
// epoch apart.
func (g *registry) add(r *run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry(r.saga.GID)
	if e.run != nil {
		return false
	}
	e.run = r
	return true
}

// isRunning reports whether the saga runs here now. When it no longer does, all waiters
// have received an end that came here.
func (g *registry) isRunning(gid string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.sagas[gid]
	return ok && e.run != nil
}

// notify tells the run of a saga, if it runs here, that a control command has changed it.
func (g *registry) notify(gid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.sagas[gid]; ok && e.run != nil {
		signal(e.run.changed)
	}
}

// remove undoes add. If the saga has ended, or is gone, it notifies the waiters.
func (g *registry) remove(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry(r.saga.GID)
	e.run = nil
	if r.gone != nil || r.state.Status.Final() {
		result := end{err: r.gone}
		if r.gone == nil {
			result.result = resultOf(r.state)
		}
		for _, w := range e.waiters {
			w <- result
		}
		e.waiters = nil
	}
	g.dropUnused(r.saga.GID, e)
}

// wait returns a channel that receives the end of the saga if that comes here.
func (g *registry) wait(gid string) chan end {
	w := make(chan end, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry(gid)
	e.waiters = append(e.waiters, w)
	return w
}

// forget undoes wait.
func (g *registry) forget(gid string, w chan end) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.sagas[gid]; ok {
		if i := slices.Index(e.waiters, w); i >= 0 {
			e.waiters = slices.Delete(e.waiters, i, i+1)
		}
		g.dropUnused(gid, e)
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

func (g *registry) dropUnused(gid string, e *entry) {
	if e.run == nil && len(e.waiters) == 0 {
		delete(g.sagas, gid)
	}
}
