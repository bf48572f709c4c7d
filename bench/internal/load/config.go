package load

import (
	"context"
	"fmt"
	"time"

	"sagabench/internal/secret"
)

// Config says what to send and where the records go.
type Config struct {
	Targets []Target    // hit in turn
	Token   secret.Text // shown to them, if there is one

	InFlight int // closed loop: requests kept in flight

	// Rate makes an open loop: how many requests are due per second. The warm-up
	// keeps the rate with which it begins.
	Rate    Profile
	Arrival Arrival // open loop: how they follow one another
	Seed    uint64  // of Poisson arrivals, which it makes the same every time; 0: drawn
	// MaxInFlight bounds the requests in flight of an open loop. A request that
	// is due while so many are under way waits, and its latency says so.
	MaxInFlight int

	Duration time.Duration // of the measured part, without the last answers
	Warmup   time.Duration // before it; 0: none
	Timeout  time.Duration // of a request, from its send
	Grace    time.Duration // how long an interrupted run waits for its answers

	Dir string // of the result; made when it is not there

	// Begin is called between the warm-up and the first measured request, End
	// after the last answer, also of an interrupted run. Either may be nil. An
	// error of Begin ends the run.
	Begin func(context.Context) error
	End   func(context.Context) error

	// Progress is called about once a second, warm-up included. It may be nil,
	// and must return quickly: no answer is taken while it runs.
	Progress func(Progress)

	// Watcher is told of every request; it may be nil.
	Watcher Watcher
}

// Progress is how the run stands.
type Progress struct {
	WarmingUp bool
	Elapsed   time.Duration // since the warm-up or the measured part began
	Planned   time.Duration // of that part
	Requests  int64         // answered since then
	Errors    int64         // of those
	// The last second: acknowledged sagas per second, and their latencies; 0
	// when there were none.
	PerS     float64
	P50, P99 time.Duration
}

// Default is a closed loop of 10 seconds; Targets and Dir are left to fill in.
func Default() Config {
	return Config{
		InFlight: 64,
		Arrival:  ArrivalConstant,
		// A second's worth of requests at 1,000/s. More would measure how the
		// server copes with connections; the wait is in the latency anyway.
		MaxInFlight: 1000,
		Duration:    10 * time.Second,
		Warmup:      2 * time.Second,
		Timeout:     10 * time.Second,
		Grace:       2 * time.Second,
	}
}

// Validate checks all but the targets; its error names the field and the limit.
func (c Config) Validate() error {
	switch {
	case c.Rate.Validate() != nil:
		return c.Rate.Validate()
	case c.Arrival.Validate() != nil:
		return c.Arrival.Validate()
	case !c.open() && c.InFlight < 1:
		return fmt.Errorf("in flight: %d, must be at least 1", c.InFlight)
	case c.open() && c.MaxInFlight < 1:
		return fmt.Errorf("most in flight: %d, must be at least 1", c.MaxInFlight)
	case c.Duration <= 0:
		return fmt.Errorf("duration %v: must be more than 0", c.Duration)
	case c.Warmup < 0:
		return fmt.Errorf("warm-up %v: must not be negative", c.Warmup)
	case c.Timeout <= 0:
		return fmt.Errorf("timeout %v: must be more than 0", c.Timeout)
	}
	return nil
}

func (c Config) open() bool { return c.Rate.IsOpen() }

// workers is how many requests may be in flight.
func (c Config) workers() int {
	if c.open() {
		return c.MaxInFlight
	}
	return c.InFlight
}
