package capacity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// openLoop makes an open-loop measurement at a rate, in requests per second.
type openLoop func(ctx context.Context, rate float64, length time.Duration) (result.Step, error)

// initialShares are the first rates, as shares of the guess. The highest rate is assumed
// to lie between lowestShare and highestShare of the guess.
var initialShares = []float64{0.1, 0.25, 0.5, 0.7, 0.85, 1}

const lowestShare, highestShare = 0.01, 10

// nextQuantiles are the quantiles of the posterior that are measured next, alternately.
// The median alone would find the rate a little sooner, but not the transition width.
var nextQuantiles = []float64{0.25, 0.75}

// searcher is a search for the highest rate.
type searcher struct {
	cfg       Config
	open      openLoop
	posterior *posterior
	steps     []result.Step
}

// search measures around the highest rate that meets the service level. guess is a first
// estimate of it, per second. search returns its measurements, judged, in the order in
// which they were made. It returns them with an error of open, too.
func search(ctx context.Context, cfg Config, guess float64, open openLoop) ([]result.Step, error) {
	lowest := max(guess*lowestShare, samples(cfg.SLO, result.SamplesBeyond)/cfg.LongStep.Seconds())
	s := &searcher{cfg: cfg, open: open, posterior: newPosterior(lowest, max(guess, lowest)*highestShare), steps: []result.Step{}}
	err := s.run(ctx, guess)
	return s.steps, err
}

func (s *searcher) run(ctx context.Context, guess float64) error {
	until := time.Now().Add(s.cfg.Budget)
	violations := 0 // in a row: one may be chance
	for _, share := range initialShares {
		met, err := s.measure(ctx, max(share*guess, s.posterior.rates[0]))
		if err != nil {
			return err
		}
		if violations++; met {
			violations = 0
		}
		if violations == 2 || violations > 0 && s.steps[len(s.steps)-1].Load.Overloaded() {
			break
		}
	}
	for n := 0; s.posterior.width() > s.cfg.Width && time.Now().Before(until); n++ {
		if _, err := s.measure(ctx, s.posterior.quantile(nextQuantiles[n%len(nextQuantiles)])); err != nil {
			return err
		}
	}
	return nil
}

// lateTries is how often a rate is measured if the load generator is late. Late once may
// be chance. Late twice is the limit of the generator, and counts as a violation.
const lateTries = 2

// measure reports whether a rate meets the service level.
func (s *searcher) measure(ctx context.Context, rate float64) (met bool, err error) {
	rate = threeDigits(rate)
	for try := 1; ; try++ {
		m, err := s.open(ctx, rate, s.length(rate))
		if m.Load.Requests > 0 {
			judge(&m, s.cfg.SLO)
			if !m.Validity.Valid && try == lateTries {
				m.MeetsSLO = new(bool)
			}
			s.steps = append(s.steps, m)
		}
		switch {
		case err != nil:
			return false, err
		case m.MeetsSLO != nil:
			s.posterior.update(rate, *m.MeetsSLO)
			return *m.MeetsSLO, nil
		case m.Validity.Valid:
			return false, fmt.Errorf("at %s/s the service level cannot be judged: %s", format.Number(rate), m.Why)
		}
	}
}

// judge sets whether m met the service level, and why not. It leaves that open if m is
// not valid, or has too few requests.
func judge(m *result.Step, slo result.SLO) {
	if !m.Validity.Valid {
		m.MeetsSLO, m.Why = nil, strings.Join(m.Validity.Warnings, "; ")
		return
	}
	m.MeetsSLO, m.Why = slo.Judge(m.Measurement)
}

// beyond is how many requests should lie beyond the highest percentile of the service
// level. That percentile then is known to about 10% of them.
const beyond = 100

// length returns how long a rate has to be measured.
func (s *searcher) length(rate float64) time.Duration {
	wanted := time.Duration(samples(s.cfg.SLO, beyond) / rate * float64(time.Second))
	return min(max(wanted, s.cfg.Step), s.cfg.LongStep)
}

// samples returns how many requests it takes for this many to lie beyond the highest
// percentile of the service level.
func samples(slo result.SLO, beyond float64) (n float64) {
	for _, goal := range slo.Latencies {
		n = max(n, beyond/(1-goal.Percentile/100))
	}
	return n
}
