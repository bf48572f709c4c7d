package load

import (
	"time"

	"sagabench/store"
)

// Observer sees the load while it is sent, the warm-up included. Its methods must return
// quickly. Several goroutines call them at once.
type Observer interface {
	// PhaseStarted is called when the warm-up and when the measured part begins. rate
	// returns the requests due per second at a time since then; nil: closed loop.
	PhaseStarted(rate func(elapsed time.Duration) float64)
	// RequestSent is called when a request is sent. A RequestDone follows.
	RequestSent()
	RequestDone(Answer)
	// PhaseEnded is called after the last answer, with the number of requests that were
	// due and not sent.
	PhaseEnded(dropped int64)
}

// Answer is what became of a request.
type Answer struct {
	Outcome store.Status // of an acknowledged saga
	Kind    string       // of the error; empty for an acknowledged saga

	Latency, Service time.Duration // from the due time and from the send; also of errors
	Late             bool          // sent more than result.LateAfter after it was due
}

// noObserver ignores everything.
type noObserver struct{}

func (noObserver) PhaseStarted(func(time.Duration) float64) {}
func (noObserver) RequestSent()                             {}
func (noObserver) RequestDone(Answer)                       {}
func (noObserver) PhaseEnded(int64)                         {}

func (c Config) observer() Observer {
	if c.Observer == nil {
		return noObserver{}
	}
	return c.Observer
}
