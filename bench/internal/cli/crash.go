package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/loss"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/deploy/lab"
	"sagabench/internal/format"
	"sagabench/store"
)

// runCrash crashes the store of a variant under load. What that loses is a figure of the
// run, and no violation.
func (a *app) runCrash(ctx context.Context, job matrix.Job) (run result.MatrixRun, err error) {
	v, err := a.jobVariant(job)
	if err != nil {
		return run, err
	}
	own, settings, err := v.app.prepare(v.run)
	if err != nil {
		return run, err
	}
	started := own.servers.(*session.Started)
	if !started.Store.Embedded() && !v.run.start.start {
		return run, fmt.Errorf("crash: %s has a server that was not started for it, want the name of a store", started.Store.Driver)
	}
	cfg := loss.Default()
	cfg.Store, cfg.Program, cfg.Token, cfg.Scenario = started.Store, started.Program, own.cfg.Token, own.cfg.Scenario
	cfg.Server = lab.Config{Binary: v.run.start.binary, Settings: settings, CPUs: v.run.start.cpus}
	cfg.Crash = cmp.Or(loss.Crash(job.Variant.Values.Text(matrix.KeyCrash)), cfg.Crash)
	cfg.InFlight, cfg.Duration, cfg.Dir = own.cfg.Load.InFlight, job.Variant.Values.Duration(matrix.KeyDuration, cfg.Duration), job.Dir
	began := time.Now()
	found, err := loss.Run(ctx, cfg)
	if err != nil {
		return run, err
	}
	run.Envelope = result.Envelope{
		Schema: result.Schema, Kind: result.KindRun,
		Run: result.Run{
			ID: result.RunID(began, found.Store.Driver), Started: began, DurationS: found.AfterS, Command: own.cfg.Command,
			Store: found.Store, Scenario: result.Scenario(cfg.Scenario), AppHosts: 1, SharedHost: true,
			Topology: "load, app and store on one machine",
		},
		Check: found.Check, Environment: environment.Describe(ctx), Validity: result.Validity{Valid: true},
	}
	run.Check.Lost = nil
	lost := *found.Check.Lost
	if class, known := store.ParseDurability(found.Store.Durability); known && class >= store.D3 && lost > 0 {
		run.Validity.Warnings = []string{fmt.Sprintf("promise broken: a crash of the %s lost %s in class %s", found.Crash, format.Plural(lost, "acknowledged saga"), class)}
	}
	run.Metrics = map[string]float64{"acknowledged": float64(found.Check.Acknowledged), "lost": float64(lost), "window_ms": found.WindowMS}
	return run, nil
}
