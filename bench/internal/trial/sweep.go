package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
)

// Measure makes one measurement of a sweep. Its error says that the sweep cannot go
// on, or that nothing was measured; what was until then is in the result all the
// same.
type Measure func(ctx context.Context, shape load.Config) (result.Step, error)

// Sweep has the servers measured many times, with the same sagas in other rates or
// numbers in flight. The store is audited once, at the end: it goes on filling from
// one measurement to the next.
//
// The summary has what all of them have in common; what each gave is the sweep's
// to keep. When the sweep ends with an error, the summary says that it is
// incomplete, and there is none when nothing was measured.
func Sweep(ctx context.Context, cfg Config, servers Servers, sweep func(context.Context, Measure) error) (result.Summary, error) {
	t := servers.trial(cfg)
	defer t.close()
	s := &series{trial: t}
	err := t.serve(ctx, func(ctx context.Context) error { return sweep(ctx, s.measure) })
	if s.measured == 0 && err != nil {
		t.discard(ctx)
		return result.Summary{}, err
	}
	return s.finish(context.WithoutCancel(ctx), err), nil
}

// stepsDir holds the directories of a sweep's measurements.
const stepsDir = "steps"

// series is a sweep under way.
type series struct {
	*trial
	dirs            []string // of the measurements that began
	tried, measured int
	requests        int64
	errors          int64
	acknowledged    int64
	elapsed         time.Duration // to the end of the last one
}

func (s *series) measure(ctx context.Context, shape load.Config) (result.Step, error) {
	s.tried++
	dir := filepath.Join(s.cfg.Dir, stepsDir, fmt.Sprintf("%02d", s.tried))
	shape.Dir = dir
	began := time.Now()
	m, err := s.trial.measure(ctx, shape)
	if _, missing := os.Stat(filepath.Join(dir, result.FileAcknowledged)); missing == nil {
		s.dirs = append(s.dirs, dir)
		s.acknowledged += m.load.Acknowledged // those of a warm-up too, if that was all there was
	}
	if gone := s.gone(ctx, m, err); gone != nil {
		m.load.Incomplete, err = gone.Error(), gone
	}
	err = errors.Join(err, context.Cause(ctx))
	if m.load.Elapsed == 0 && err == nil {
		err = errors.New("nothing was measured")
	}
	if m.load.Elapsed == 0 {
		return result.Step{}, err
	}
	s.measured++
	s.elapsed = time.Since(s.started)
	s.requests += m.load.Requests
	s.errors += m.load.Errors
	e := m.evidence(shape.Duration)
	one := result.Step{
		Measurement: result.Measurement{
			Load:        m.load.Load(),
			LatencyMS:   result.LatencyOf(m.load.Latency),
			ServiceMS:   result.LatencyOf(m.load.Service),
			CostPerSaga: m.usage.PerSaga(m.load.Sagas()),
			Resources:   e.Resources,
		},
		StartS:    began.Sub(s.started).Seconds(),
		DurationS: m.load.Elapsed.Seconds(),
	}
	one.Validity = validity.JudgeStep(one, e, s.shared)
	return one, err
}

// gone is why a sweep cannot go on, if a server is what failed it: without that one
// all that follows would be of other servers than what was before.
func (s *series) gone(ctx context.Context, m measurement, err error) error {
	if s.reach == nil || ctx.Err() != nil || err == nil && m.load.Errors == 0 {
		return nil
	}
	if err := s.reach(ctx); err != nil {
		return fmt.Errorf("not all servers answer any more: %w", err)
	}
	return nil
}

// finish audits the store and judges what all measurements have in common.
func (s *series) finish(ctx context.Context, ended error) result.Summary {
	summary := s.summary(ctx, s.elapsed)
	summary.Load.Requests, summary.Load.Errors = s.requests, s.errors
	summary.Check.Acknowledged = s.acknowledged
	e := validity.Evidence{Planned: s.elapsed}
	if ended != nil {
		e.Incomplete = ended.Error()
		if errors.Is(ended, context.Canceled) {
			e.Incomplete = "interrupted"
		}
	}
	if s.died != "" {
		e.Incomplete = s.died
	}
	s.audit(ctx, &summary, &e, s.dirs...)
	summary.Validity = validity.JudgeSweep(summary, e)
	for _, dir := range s.dirs { // audited: they would be most of the result
		os.Remove(filepath.Join(dir, result.FileAcknowledged))
		os.Remove(filepath.Join(dir, result.FileResults))
	}
	return summary
}
