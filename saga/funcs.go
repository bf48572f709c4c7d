package saga

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// What a Func may answer, beside nil for success. Any other error means that it
// could not be found out: it is called again.
var (
	ErrRefused = errors.New("refused")     // for good
	ErrOngoing = errors.New("not decided") // yet: ask again
)

// Func is a branch in this process. Like any participant it may be called more
// than once for the same branch. It must return when ctx ends: its saga, and a
// coordinator that is closed, wait for it.
type Func func(ctx context.Context, c Call) error

// Funcs calls branches that are Go functions: those whose URL is funcScheme and
// a name. All others are for the next Caller. Register all functions before a
// coordinator is started.
type Funcs struct {
	next  Caller
	funcs map[string]Func
}

var _ Caller = (*Funcs)(nil)

const funcScheme = "func:"

// NewFuncs knows no function yet. next may be nil: then there are only functions.
func NewFuncs(next Caller) *Funcs { return &Funcs{next: next, funcs: make(map[string]Func)} }

// Handle names a function, and returns the URL by which steps refer to it. The
// name stands in stored sagas: whoever takes them up must know it, too.
func (f *Funcs) Handle(name string, fn Func) (url string) {
	f.funcs[name] = fn
	return funcScheme + name
}

// Check implements Caller.
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

// Call implements Caller. A function that has returned is not at work any more.
func (f *Funcs) Call(ctx context.Context, c Call) (outcome Outcome, why string) {
	name, ok := strings.CutPrefix(c.URL, funcScheme)
	if !ok && f.next != nil {
		return f.next.Call(ctx, c)
	}
	fn := f.funcs[name]
	if fn == nil {
		return Ended, fmt.Sprintf("no function %q in this process", c.URL)
	}
	defer func() {
		if p := recover(); p != nil {
			outcome, why = Ended, fmt.Sprintf("panic: %v", p)
		}
	}()
	switch err := fn(ctx, c); {
	case err == nil:
		return Succeeded, ""
	case errors.Is(err, ErrRefused):
		return Failed, err.Error()
	case errors.Is(err, ErrOngoing):
		return Ongoing, err.Error()
	default:
		return Ended, err.Error()
	}
}
