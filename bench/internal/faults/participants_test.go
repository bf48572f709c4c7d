package faults

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// call is one call of a branch, as its participant saw it.
type call struct {
	step       int
	compensate bool
	start, end time.Time // zero end: not ended
	done       bool      // not refused
}

// participants serve the branches of all sagas and record their calls.
type participants struct {
	seed uint64
	url  string

	mu    sync.Mutex
	calls map[string][]*call // by gid, in the order of their starts
}

func newParticipants(t *testing.T, seed uint64) *participants {
	p := &participants{seed: seed, calls: make(map[string][]*call)}
	server := httptest.NewServer(p)
	t.Cleanup(server.CloseClientConnections) // Close waits for calls that hang
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *participants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gid, compensate := r.FormValue("gid"), r.FormValue("op") == "compensate"
	number, err := strconv.Atoi(r.FormValue("branch_id"))
	plan := planOf(p.seed, gid)
	if err != nil || number < 1 || number > len(plan.actions) {
		http.Error(w, "no such branch", http.StatusBadRequest)
		return
	}
	step := number - 1
	does := plan.actions[step]
	if compensate {
		does = plan.compensates[step]
	}
	c, first := p.begin(gid, step, compensate)
	switch {
	case does == isSlow:
		time.Sleep(requestTimeout / 8)
	case does == hangs && first:
		time.Sleep(requestTimeout * 3 / 2) // it continues after the caller's deadline
	}
	p.finish(c, does != refuses)
	switch {
	case does == refuses:
		w.WriteHeader(http.StatusConflict)
	case does == cuts && first:
		panic(http.ErrAbortHandler)
	}
}

func (p *participants) begin(gid string, step int, compensate bool) (c *call, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first = true
	for _, other := range p.calls[gid] {
		if other.step == step && other.compensate == compensate {
			first = false
		}
	}
	c = &call{step: step, compensate: compensate, start: time.Now()}
	p.calls[gid] = append(p.calls[gid], c)
	return c, first
}

func (p *participants) finish(c *call, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.end, c.done = time.Now(), done
}

// of returns the calls of a saga that have begun so far.
func (p *participants) of(gid string) []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []call
	for _, c := range p.calls[gid] {
		calls = append(calls, *c)
	}
	return calls
}
