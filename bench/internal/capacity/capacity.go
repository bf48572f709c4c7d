// Package capacity finds the highest rate at which a service level is kept.
//
// It measures in three parts, on one store that goes on filling:
//
//   - the scaling curve: closed loops from 1 to 512 in flight. They show how the
//     throughput grows, and the highest is where the search begins;
//   - the latency over the rate: open loops from a tenth of that upwards, until the
//     service level is broken;
//   - the edge: in turns a rate below which it is with a likelihood of one in four and
//     of three in four, given all that was measured until then, so that most of the time
//     is spent where it is decided. A slow moment may break the service level at any
//     rate, and a machine may be quicker now and slower then; both are reckoned with.
//
// A step lasts until the percentile that it judges has a hundred requests beyond
// it. What the steps say together, with an interval, is [FindEdge].
//
// It leaves to others how a rate is sent (package session), the law that is fitted
// (package usl) and what follows from it for other rates (package plan).
package capacity

import (
	"context"
	"fmt"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Config of a search.
type Config struct {
	SLO      result.SLO
	Step     time.Duration // least length of an open-loop measurement
	LongStep time.Duration // most: a low rate has to be judged from fewer requests
	Width    float64       // of the 95% interval, relative to the rate, that is narrow enough
	Budget   time.Duration // after which the edge is not searched for any more

	// Of each point of the scaling curve: short, for it shows a throughput and no
	// percentile.
	ScalingStep, ScalingWarmup time.Duration
}

// Default wants to know the rate to ±5%, and takes some two minutes for it.
func Default() Config {
	return Config{
		SLO:      result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: result.DefaultErrorBudget},
		Step:     4 * time.Second,
		LongStep: 30 * time.Second,
		Width:    0.1,
		Budget:   150 * time.Second,

		ScalingStep:   2500 * time.Millisecond,
		ScalingWarmup: 500 * time.Millisecond,
	}
}

// WithStep is the search with other steps, each after a warm-up. Longer ones make all
// of it longer, and shorter ones shorter; but a rate is too low for a short step when
// too few requests would lie beyond the percentile that is judged.
func (c Config) WithStep(step, warmup time.Duration) Config {
	c.Budget = time.Duration(float64(c.Budget) * float64(step) / float64(c.Step))
	c.Step, c.LongStep = step, max(c.LongStep, step)
	c.ScalingStep, c.ScalingWarmup = min(c.ScalingStep, step), min(c.ScalingWarmup, warmup)
	return c
}

// Open makes an open-loop measurement: requests are due at the rate, per second.
type Open func(ctx context.Context, rate float64, length time.Duration) (result.Step, error)

// ladder has the rates of the curve of latencies, as shares of the guess. The edge is
// searched for from lowestShare to highestShare of it.
var ladder = []float64{0.1, 0.25, 0.5, 0.7, 0.85, 1}

const lowestShare, highestShare = 0.01, 10

// Search measures around the highest rate that keeps the service level, which is
// guessed to be near guess, per second. It returns all its measurements, judged, in
// the order in which they were made; also with an error, which is that of open.
func Search(ctx context.Context, cfg Config, guess float64, open Open) ([]result.Step, error) {
	lowest := max(guess*lowestShare, samples(cfg.SLO, result.SamplesBeyond)/cfg.LongStep.Seconds())
	s := &search{ctx: ctx, cfg: cfg, open: open, edge: newBelief(lowest, max(guess, lowest)*highestShare)}
	return s.steps, s.run(guess)
}

// aims are where the edge is searched for, in turns: the likelihoods that it is below.
// Always in the middle it would be found a little sooner, but not how soft it is.
var aims = []float64{0.25, 0.75}

// search is a search under way.
type search struct {
	ctx   context.Context
	cfg   Config
	open  Open
	edge  *belief
	steps []result.Step
}

func (s *search) run(guess float64) error {
	until := time.Now().Add(s.cfg.Budget)
	broken := 0 // in a row: one may be chance
	for _, share := range ladder {
		kept, err := s.measure(max(share*guess, s.edge.rates[0]))
		if err != nil {
			return err
		}
		if broken++; kept {
			broken = 0
		}
		if broken == 2 || broken > 0 && s.steps[len(s.steps)-1].Load.Overloaded() {
			break
		}
	}
	for n := 0; s.edge.width() > s.cfg.Width && time.Now().Before(until); n++ {
		if _, err := s.measure(s.edge.quantile(aims[n%len(aims)])); err != nil {
			return err
		}
	}
	return nil
}

// lateTries is how often a rate is tried for which the load generator is late.
// Once may be chance; then it is the generator's limit.
const lateTries = 2

// measure learns whether a rate keeps the service level.
func (s *search) measure(rate float64) (kept bool, err error) {
	rate = digits(rate)
	for try := 1; ; try++ {
		m, err := s.open(s.ctx, rate, s.length(rate))
		if m.Load.Requests > 0 {
			Judge(&m, s.cfg.SLO)
			if !m.Validity.Valid && try == lateTries {
				m.MeetsSLO = new(bool)
			}
			s.steps = append(s.steps, m)
		}
		switch {
		case err != nil:
			return false, err
		case m.MeetsSLO != nil:
			s.edge.learn(rate, *m.MeetsSLO)
			return *m.MeetsSLO, nil
		case m.Validity.Valid:
			return false, fmt.Errorf("at %s/s the service level cannot be judged: %s", format.Number(rate), m.Why)
		}
	}
}

// beyond is how many requests should lie beyond a percentile that is judged: their
// number then is known to some 10%.
const beyond = 100

// length is how long a rate has to be measured.
func (s *search) length(rate float64) time.Duration {
	wanted := time.Duration(samples(s.cfg.SLO, beyond) / rate * float64(time.Second))
	return min(max(wanted, s.cfg.Step), s.cfg.LongStep)
}

// samples is how many requests it takes for so many to lie beyond the highest
// percentile of the service level.
func samples(slo result.SLO, beyond float64) (n float64) {
	for _, goal := range slo.Latencies {
		n = max(n, beyond/(1-goal.Percentile/100))
	}
	return n
}
