package cli

import (
	"context"
	"fmt"
	"time"

	"sagabench/bench/internal/probe"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/internal/document"
	"sagabench/lua/microbench"
	"sagabench/store/open"
)

// luaSummary is summary.json of bench lua: the parts of a summary that it has, and
// its own.
type luaSummary struct {
	result.Envelope         // Check: of the runs of sagas, together
	Lua             luaPart `json:"lua"`
}

type luaPart struct {
	Servers []microbench.Result `json:"servers"`
}

// finish writes what there is, and prints it.
func (r *luaRun) finish(ctx context.Context, incomplete string) error {
	s := r.summary(ctx, incomplete)
	shown := microbench.Report{
		Results: r.results, Valid: s.Validity.Valid, Warnings: s.Validity.Warnings, Command: s.Run.Command,
		Notes: []document.Fact{
			{Name: "machine", Value: fmt.Sprintf("%s, %d cores", s.Environment.CPU, s.Environment.Cores)},
			{Name: "software", Value: s.Environment.Kernel + ", " + s.Environment.Go},
			{Name: "topology", Value: s.Run.Topology},
			{Name: "started", Value: s.Run.Started.UTC().Format(time.RFC3339)},
			{Name: "files", Value: r.dir},
		},
	}.Document()
	if err := write(r.dir, s, shown); err != nil {
		return err
	}
	return r.show(s, s.Validity, shown, r.dir)
}

func (r *luaRun) summary(ctx context.Context, incomplete string) luaSummary {
	s := luaSummary{Lua: luaPart{r.results}, Envelope: result.Envelope{
		Schema: result.Schema, Kind: result.KindLua,
		Run: result.Run{
			ID: result.RunID(r.started, "lua"), Started: r.started, DurationS: time.Since(r.started).Seconds(), Command: r.command(),
			Scenario: result.Scenario(server.DefaultConfig().Scenario), Topology: "not known: there was no run of sagas",
			Commit: probe.Commit(ctx),
		},
		Validity:    result.Validity{Valid: incomplete == "", Warnings: []string{}},
		Environment: probe.Environment(ctx),
	}}
	first := r.results[0].Server
	s.Run.Store = result.Store{Driver: open.Redis, Version: first.Version, Settings: first.Settings}
	if len(r.trials) > 0 {
		run := r.trials[0].Run
		var checks []result.Check
		for _, one := range r.trials {
			checks = append(checks, one.Check)
		}
		s.Check = result.SumChecks(checks)
		s.Run.Store, s.Run.Topology, s.Run.SharedHost = run.Store, run.Topology, run.SharedHost
	}
	if incomplete != "" {
		s.Validity.Warnings = append(s.Validity.Warnings, "incomplete: "+incomplete)
	}
	if s.Run.SharedHost {
		s.Validity.Warnings = append(s.Validity.Warnings, "shared host: the caller and Redis share a machine; rates are relative only, CPU per call holds better")
	}
	s.Validity.Warnings = append(s.Validity.Warnings, r.warnings...)
	for _, one := range r.results {
		for _, warning := range one.Warnings {
			s.Validity.Warnings = append(s.Validity.Warnings, one.Label()+": "+warning)
		}
	}
	return s
}
