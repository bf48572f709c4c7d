package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sagabench/bench/internal/result"
)

// Run sends the load and returns what came of it. When ctx ends, the run ends
// early: what was measured until then is returned, marked incomplete, and no
// error.
//
// An error means that the load could not be sent or not be recorded: the
// configuration is wrong, all of the warm-up failed, Begin or End failed, or a
// file could not be written. The result then holds what is known, its histograms
// are nil when nothing was measured, and it says that it is incomplete.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	if err := errors.Join(cfg.Validate(), cfg.validateTargets()); err != nil {
		return Result{}, err
	}
	_, missing := os.Stat(cfg.Dir)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return Result{}, fmt.Errorf("make the result directory: %w", err)
	}
	journal, err := createJournal(cfg.Dir)
	if err != nil {
		return Result{}, err
	}
	transport := newTransport(cfg.Timeout, cfg.workers())
	defer transport.close()
	defer func() {
		err = errors.Join(err, journal.close())
		res.Acknowledged = journal.lines
		switch {
		case err != nil:
			res.Incomplete = err.Error()
		case ctx.Err() != nil:
			res.Incomplete = "interrupted"
		}
	}()

	if cfg.Warmup > 0 {
		err := warmUp(ctx, cfg, transport, journal)
		if errors.Is(err, errAllFailed) {
			// Nothing is to be kept: whoever mistyped an address does not want
			// a directory for it.
			_ = os.Remove(filepath.Join(cfg.Dir, result.FileAcknowledged))
			if missing != nil {
				_ = os.Remove(cfg.Dir)
			}
		}
		if err != nil {
			return Result{}, err
		}
	}
	if cfg.Begin != nil {
		if err := cfg.Begin(context.WithoutCancel(ctx)); err != nil {
			return Result{}, err
		}
	}
	res, err = measure(ctx, cfg, transport, journal)
	if cfg.End != nil {
		err = errors.Join(err, cfg.End(context.WithoutCancel(ctx)))
	}
	return res, err
}

var errAllFailed = errors.New("no saga was acknowledged")

func warmUp(ctx context.Context, cfg Config, t *transport, j *journal) error {
	p := newPhase(ctx, cfg, cfg.Rate.first(), cfg.Warmup, t, j)
	if err := p.run(ctx); err != nil {
		return err
	}
	if res := p.meter.res; res.Requests > 0 && res.Errors == res.Requests && ctx.Err() == nil {
		return fmt.Errorf("%w: all %d requests of the warm-up failed (%s)", errAllFailed, res.Errors, p.meter.mostFrequent())
	}
	return nil
}

func measure(ctx context.Context, cfg Config, t *transport, j *journal) (Result, error) {
	p := newPhase(ctx, cfg, cfg.Rate, cfg.Duration, t, j)
	files, err := createFiles(cfg.Dir, p.began)
	if err != nil {
		return Result{}, err
	}
	p.files, p.meter.log = files, files.log
	err = p.run(ctx)
	res := p.meter.res
	return res, errors.Join(err, files.close(res.Service, p.began, p.began.Add(res.Elapsed)))
}
