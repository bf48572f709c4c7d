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
	if cfg.dial != nil {
		transport.http.DialContext = cfg.dial
	}
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

	a, err := newAttack(ctx, cfg, transport, acks)
	if err != nil {
		return Result{}, err
	}
	begun, err := a.run(ctx)
	if errors.Is(err, errAllFailed) {
		// After a mistyped address, leave no directory.
		for _, name := range []string{result.FileAcknowledged, result.FileResults, result.FileHistogramLog} {
			_ = os.Remove(filepath.Join(cfg.Dir, name))
		}
		if missing != nil {
			_ = os.Remove(cfg.Dir)
		}
		return Result{}, err
	}
	if begun && cfg.End != nil {
		err = errors.Join(err, cfg.End(context.WithoutCancel(ctx)))
	}
	return a.recorder.res, err
}
