package session

import (
	"cmp"
	"context"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
)

// Run measures the servers once with cfg.Load, and audits the store if it is known.
// After an error that left nothing measured, it removes what it made.
func Run(ctx context.Context, cfg Config, servers Servers) (result.Summary, error) {
	s, err := Open(ctx, cfg, servers)
	if err != nil {
		return result.Summary{}, err
	}
	defer s.removeTemporary()
	m, err := s.measure(ctx, cfg.Load, cfg.Dir)
	ctx = context.WithoutCancel(ctx) // what was measured is worth keeping
	err = cmp.Or(err, servers.stop(cfg))
	switch {
	case err != nil && m.load.Elapsed == 0:
		s.discard(ctx)
		return result.Summary{}, err
	case err != nil:
		m.load.Incomplete = err.Error()
	}

	evidence := m.evidence(cfg.Load)
	summary := s.summary(ctx, m.load.Elapsed)
	summary.Measurement = m.figures()
	summary.Timeline = result.TimelineOf(m.load.Intervals, m.usage.Timeline)
	s.audit(ctx, &summary, &evidence)
	summary.Validity = validity.Judge(summary, evidence)
	return summary, nil
}
