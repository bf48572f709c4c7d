package load

import (
	"time"

	"sagabench/store"
)

// Watcher is told what the load does while it does it, warm-up included. Each
// phase is one Begins and one Ends. Its methods must return quickly; they are
// called by several goroutines at once.
type Watcher interface {
	// Begins says that requests are due from now on, rate of them per second at a
	// time since then. In a closed loop rate is nil.
	Begins(rate func(elapsed time.Duration) float64)
	// Sends says that a request is on its way; an Answered follows.
	Sends()
	// Answered says what became of one.
	Answered(Answer)
	// Ends says that all have been answered, and how many were due and never sent.
	Ends(dropped int64)
}

// Answer is what became of a request.
type Answer struct {
	Outcome store.Status // of an acknowledged saga
	Kind    string       // of the error; empty: it is an acknowledged saga

	Latency, Service time.Duration // from the due time and from the send; also of an error
	Late             bool          // sent more than report.LateAfter after it was due
}

// deaf is for when nobody watches.
type deaf struct{}

func (deaf) Begins(func(time.Duration) float64) {}
func (deaf) Sends()                             {}
func (deaf) Answered(Answer)                    {}
func (deaf) Ends(int64)                         {}

func (c Config) watcher() Watcher {
	if c.Watcher == nil {
		return deaf{}
	}
	return c.Watcher
}
