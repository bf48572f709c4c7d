// Package branch calls the branches of sagas: [HTTP] over HTTP, and [Funcs] as functions
// of this process.
package branch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sagabench/saga"
	"sagabench/saga/machine"
)

// Errors that a Func returns. With nil it has succeeded. After any other error the outcome
// is unknown, and it is called again.
var (
	ErrRefused = errors.New("refused")     // for good
	ErrOngoing = errors.New("not decided") // yet: call again
)

// Func is a branch in this process. Like any participant it may be called more
// than once for the same branch. It must return when ctx ends: its saga, and a
// coordinator that is closed, wait for it.
type Func func(ctx context.Context, c saga.Call) error

// Funcs calls branches that are Go functions. Their URLs are func:NAME. Another caller
// gets all other URLs. Register all functions before the coordinator is started.
type Funcs struct {
	next  saga.Caller
	funcs map[string]Func
}

var _ saga.Caller = (*Funcs)(nil)

const funcScheme = "func:"

// NewFuncs returns a caller without functions. next gets all other URLs; nil: there are
// none.
func NewFuncs(next saga.Caller) *Funcs { return &Funcs{next: next, funcs: make(map[string]Func)} }

// Handle registers a function, and returns its URL for the steps of sagas. Stored sagas
// contain the name: all coordinators of the store must have registered it.
func (f *Funcs) Handle(name string, fn Func) (url string) {
	f.funcs[name] = fn
	return funcScheme + name
}

// Check implements saga.Caller.
func (f *Funcs) Check(url string) error {
	name, ok := strings.CutPrefix(url, funcScheme)
	switch {
	case ok && f.funcs[name] == nil:
		return fmt.Errorf("url %q: no such function", url)
	case ok:
		return nil
	case f.next == nil:
		return fmt.Errorf("url %q: only functions are called here, as in %sNAME", url, funcScheme)
	default:
		return f.next.Check(url)
	}
}

// Call implements saga.Caller. A function that has returned is not at work any more.
func (f *Funcs) Call(ctx context.Context, c saga.Call) (outcome machine.Outcome, why string) {
	name, ok := strings.CutPrefix(c.URL, funcScheme)
	if !ok && f.next != nil {
		return f.next.Call(ctx, c)
	}
	fn := f.funcs[name]
	if fn == nil {
		return machine.Ended, fmt.Sprintf("no function %q in this process", c.URL)
	}
	defer func() {
		if p := recover(); p != nil {
			outcome, why = machine.Ended, fmt.Sprintf("panic: %v", p)
		}
	}()
	switch err := fn(ctx, c); {
	case err == nil:
		return machine.Succeeded, ""
	case errors.Is(err, ErrRefused):
		return machine.Failed, err.Error()
	case errors.Is(err, ErrOngoing):
		return machine.Ongoing, err.Error()
	default:
		return machine.Ended, err.Error()
	}
}
