package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sagabench/bench/internal/result"
)

// Run sends the load and returns the result. If ctx ends, Run returns what was measured
// until then, marked incomplete, and no error.
//
// Run returns an error if the configuration is invalid, all requests of the warm-up
// failed, Begin or End failed, or a file could not be written. The result is then
// incomplete. Its histograms are nil if nothing was measured.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	if err := errors.Join(cfg.Validate(), cfg.validateTargets()); err != nil {
		return Result{}, err
	}
	_, missing := os.Stat(cfg.Dir)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return Result{}, fmt.Errorf("make the result directory: %w", err)
	}
	list, err := createOutput(cfg.Dir, result.FileAcknowledged)
	if err != nil {
		return Result{}, err
	}
	acks := &ackFile{output: list}
	transport := newTransport(cfg.Timeout, cfg.workers())
	defer transport.close()
	defer func() {
		err = errors.Join(err, acks.close())
		res.Acknowledged = acks.lines
		switch {
		case err != nil:
			res.Incomplete = err.Error()
		case ctx.Err() != nil:
			res.Incomplete = "interrupted"
		}
	}()

	if cfg.Warmup > 0 {
		err := warmUp(ctx, cfg, transport, acks)
		if errors.Is(err, errAllFailed) {
			// After a mistyped address, leave no directory.
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
	res, err = measure(ctx, cfg, transport, acks)
	if cfg.End != nil {
		err = errors.Join(err, cfg.End(context.WithoutCancel(ctx)))
	}
	return res, err
}

var errAllFailed = errors.New("no saga was acknowledged")

func warmUp(ctx context.Context, cfg Config, t *transport, acks *ackFile) error {
	p := newPhase(ctx, cfg, cfg.Rate.first(), cfg.Warmup, t, acks)
	if err := p.run(ctx); err != nil {
		return err
	}
	if res := p.recorder.res; res.Requests > 0 && res.Errors == res.Requests && ctx.Err() == nil {
		return fmt.Errorf("%w: all %d requests of the warm-up failed (%s)", errAllFailed, res.Errors, p.recorder.mostFrequent())
	}
	return nil
}

func measure(ctx context.Context, cfg Config, t *transport, acks *ackFile) (Result, error) {
	p := newPhase(ctx, cfg, cfg.Rate, cfg.Duration, t, acks)
	files, err := createFiles(cfg.Dir, p.began)
	if err != nil {
		return Result{}, err
	}
	p.files, p.recorder.log = files, files.log
	err = p.run(ctx)
	res := p.recorder.res
	return res, errors.Join(err, files.close(res.Service, p.began, p.began.Add(res.Elapsed)))
}
