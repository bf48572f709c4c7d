package cli

import (
	"cmp"
	"context"
	"time"

	"sagabench/bench/internal/loss"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

// runCrash crashes the store of a variant under load.
func (a *app) runCrash(ctx context.Context, job matrix.Job) (run result.MatrixRun, err error) {
	v, err := a.jobVariant(job)
	if err != nil {
		return run, err
	}
	own, servers, err := v.app.prepare(v.run)
	if err != nil {
		return run, err
	}
	started := own.servers.(*session.Started)
	cfg := loss.Default()
	cfg.Store, cfg.Program, cfg.Token, cfg.Scenario = started.Store, started.Program, own.cfg.Token, own.cfg.Scenario
	cfg.Servers = servers
	cfg.Crash = cmp.Or(loss.Crash(job.Variant.Values[matrix.KeyCrash]), cfg.Crash)
	cfg.InFlight, cfg.Duration, cfg.Dir = own.cfg.Load.InFlight, job.Variant.Values.Duration(matrix.KeyDuration, cfg.Duration), job.Dir
	began := time.Now()
	found, err := loss.Run(ctx, cfg)
	if err != nil {
		return run, err
	}
	return found.MatrixRun(ctx, cfg, began, own.cfg.Command), nil
}
