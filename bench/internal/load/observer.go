package load

import (
	"time"

	"sagabench/store"
)

// Observer sees the load while it is sent, the warm-up included. Its methods must return
// quickly. Several goroutines call them at once.
type Observer interface {
	// Started is called before the first request. rate returns the requests due per second
	// at a time since then; nil: closed loop.
	Started(rate func(elapsed time.Duration) float64)
	// RequestSent is called when a request is sent. A RequestDone follows.
	RequestSent()
	RequestDone(Answer)
	// Ended is called after the last answer, with the number of requests of the measured
	// part that were due and not sent.
	Ended(dropped int64)
}

// Answer is what became of a request.
type Answer struct {
	Outcome store.Status // of an acknowledged saga
	Kind    string       // of the error; empty for an acknowledged saga

	Latency, Service time.Duration // from the due time and from the send; also of errors
}

// noObserver ignores everything.
type noObserver struct{}

func (noObserver) Started(func(time.Duration) float64) {}
func (noObserver) RequestSent()                        {}
func (noObserver) RequestDone(Answer)                  {}
func (noObserver) Ended(int64)                         {}

func (c Config) observer() Observer {
	if c.Observer == nil {
		return noObserver{}
	}
	return c.Observer
}
