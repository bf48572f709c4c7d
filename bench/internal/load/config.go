package load

import (
	"context"
	"fmt"
	"net"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/secret"
)

// Config says what to send and where to record it.
type Config struct {
	Targets []Target    // used in turn
	Token   secret.Text // bearer token of the requests; may be empty

	InFlight int // closed loop: requests kept in flight

	// Rate makes an open loop: how many requests are due per second. The warm-up has
	// the rate with which it begins.
	Rate    Profile
	Arrival Arrival // open loop: arrival process
	Seed    uint64  // of the arrival process; 0: random
	// MaxInFlight bounds the requests in flight of an open loop. A request that is due
	// at the limit waits, which is part of its latency.
	MaxInFlight int

	Duration time.Duration // of the measured part, until the last send
	Warmup   time.Duration // before it; 0: none. The load goes on from one to the other.
	Timeout  time.Duration // of a request, from its send
	Grace    time.Duration // how long an interrupted run waits for answers

	// Limits end the measured part early, once too many requests are over one. With any,
	// Result.Seconds has the latencies.
	Limits []result.OverLimit

	Dir string // of the result; created if missing

	// Begin is called when the measured part begins, while load is sent: only without a
	// warm-up, the first request waits for it. End is called after the last answer, also of
	// an interrupted run, unless Begin was not called. Either may be nil. An error of Begin
	// ends the run.
	Begin func(context.Context) error
	End   func(context.Context) error

	// Progress is called about once a second, warm-up included. It may be nil. It must
	// return quickly: answers wait while it runs.
	Progress func(Progress)

	// Observer sees every request; it may be nil.
	Observer Observer

	dial func(ctx context.Context, network, address string) (net.Conn, error) // of the tests; nil: TCP
}

// Progress reports how far a run is.
type Progress struct {
	WarmingUp bool
	Elapsed   time.Duration // since the start of the warm-up or the measured part
	Planned   time.Duration // of that part
	Requests  int64         // answered since then
	Errors    int64         // of those
	// The last second: acknowledged sagas per second and their latencies, or 0.
	PerS     float64
	P50, P99 time.Duration
}

// Default returns a closed loop of 10 seconds without Targets and Dir.
func Default() Config {
	return Config{
		InFlight: 64,
		Arrival:  ArrivalConstant,
		// One second of requests at 1,000/s. More would measure how the server handles
		// connections; the wait is part of the latency anyway.
		MaxInFlight: 1000,
		Duration:    10 * time.Second,
		Warmup:      2 * time.Second,
		Timeout:     10 * time.Second,
		Grace:       2 * time.Second,
	}
}

// ValidateOpen checks what an open loop needs besides a rate.
func (c Config) ValidateOpen() error {
	if c.MaxInFlight < 1 {
		return fmt.Errorf("max in flight: %d, must be at least 1", c.MaxInFlight)
	}
	return c.Arrival.Validate()
}

// Validate checks everything but the targets. Its error names the field and the limit.
func (c Config) Validate() error {
	switch {
	case c.Rate.Validate() != nil:
		return c.Rate.Validate()
	case c.Arrival.Validate() != nil:
		return c.Arrival.Validate()
	case !c.open() && c.InFlight < 1:
		return fmt.Errorf("in flight: %d, must be at least 1", c.InFlight)
	case c.open() && c.ValidateOpen() != nil:
		return c.ValidateOpen()
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

// workers returns how many requests may be in flight.
func (c Config) workers() int {
	if c.open() {
		return c.MaxInFlight
	}
	return c.InFlight
}
