package loss

import (
	"context"
	"fmt"
	"time"

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/result"
	"sagabench/internal/format"
	"sagabench/store"
)

// MatrixRun returns the result as a run of a matrix. What the crash lost is a figure of
// the run, and no violation.
func (r Result) MatrixRun(ctx context.Context, cfg Config, began time.Time, command string) (run result.MatrixRun) {
	run.Envelope = result.Envelope{
		Schema: result.Schema, Kind: result.KindRun,
		Run: result.Run{
			ID: result.RunID(began, r.Store.Driver), Started: began, DurationS: r.AfterS, Command: command,
			Store: r.Store, Scenario: result.Scenario(cfg.Scenario), AppHosts: 1, SharedHost: true,
			Topology: "load, app and store on one machine",
		},
		Check: r.Check, Environment: environment.Describe(ctx), Validity: result.Validity{Valid: true},
	}
	run.Check.Lost = nil
	lost := *r.Check.Lost
	what, keeps := "a crash of the "+string(r.Crash), store.D3
	if r.Crash == Lost {
		what, keeps = "the loss of the primary", store.D4
		run.Run.Topology += "; the store is a primary with a replica"
	}
	if class, known := store.ParseDurability(r.Store.Durability); known && class >= keeps && lost > 0 {
		run.Validity.Warnings = []string{fmt.Sprintf("promise broken: %s lost %s in class %s", what, format.Plural(lost, "acknowledged saga"), class)}
	}
	run.Metrics = map[string]float64{"acknowledged": float64(r.Check.Acknowledged), "lost": float64(lost), "window_ms": r.WindowMS}
	return run
}
