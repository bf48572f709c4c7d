package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/report"
	"sagabench/bench/internal/trial"
	"sagabench/deploy/lab"
	"sagabench/internal/config"
	"sagabench/store/open"
)

// resultsDir holds the results of runs that name no other place.
const resultsDir = "sagabench-results"

func (a *app) runCommand() *cobra.Command {
	start := false
	cmd := &cobra.Command{
		Use:   "run STORE",
		Short: "Start a bench server, drive it, audit the store, report",
		Args:  exactlyOneStore,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0], start) },
	}
	cmd.Flags().BoolVar(&start, "start", false, "start the store's server for this run, from the binary on PATH")
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, name string, start bool) error {
	target, err := a.target(name)
	if err != nil {
		return err
	}
	cfg, err := a.trialConfig(target.Driver)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if start {
		if target.Driver != open.Redis {
			return fmt.Errorf("--start: %s has no server to start", target.Driver)
		}
		server, err := lab.StartRedis(ctx, lab.RedisConfig{})
		if err != nil {
			return err
		}
		defer server.Stop()
		target.Config.Redis.URL = server.URL()
	}
	child := trial.Child{
		Path:     exe,
		Args:     []string{"serve", target.Driver, "--listen", "127.0.0.1:0"},
		Env:      a.childEnvironment,
		Announce: servingPrefix,
	}
	if a.configFile != "" {
		child.Args = append(child.Args, "--config", a.configFile)
	}
	return a.try(cfg, func(cfg trial.Config) (report.Summary, error) { return trial.Run(ctx, cfg, target, child) })
}

// try makes a trial, shows its progress and prints its result.
func (a *app) try(cfg trial.Config, run func(trial.Config) (report.Summary, error)) error {
	progress := a.newProgress(&cfg)
	summary, err := run(cfg)
	progress.done()
	if err != nil {
		_ = os.Remove(resultsDir) // if it is empty: nothing was written
		return err
	}
	return a.print(summary, cfg.Dir)
}

// childEnvironment hands the store of a run to the bench server. Not as
// arguments, which anybody on the machine can read.
func (a *app) childEnvironment(t open.Target) []string {
	return append(a.environ[:len(a.environ):len(a.environ)],
		config.Variable("redis.url")+"="+t.Config.Redis.URL,
		config.Variable("redis.prefix")+"="+t.Config.Redis.Prefix,
		config.Variable("pebble.dir")+"="+t.Config.Pebble.Dir,
	)
}

// trialConfig checks all that can be checked before anything is started.
func (a *app) trialConfig(driver string) (trial.Config, error) {
	load, err := a.loadConfig()
	if err != nil {
		return trial.Config{}, err
	}
	if err := a.sagaConfig().Validate(); err != nil {
		return trial.Config{}, err
	}
	cfg := trial.Config{
		ID:       report.RunID(time.Now(), driver),
		Command:  a.command(),
		Dir:      a.out,
		Scenario: a.scenario(),
		Token:    a.options.Server.Token,
		Load:     load,
	}
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(resultsDir, cfg.ID)
	}
	if err := cfg.Load.Validate(); err != nil {
		return cfg, err
	}
	return cfg, cfg.Scenario.Validate()
}

// command is what was typed, without secrets.
func (a *app) command() string {
	words := []string{"go run bench/main.go"}
	for _, arg := range a.args {
		arg = open.Redact(arg)
		if strings.ContainsAny(arg, " '\"$&;|<>*?()\\") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

func (a *app) print(s report.Summary, dir string) error {
	var err error
	if a.json {
		err = report.WriteJSON(a.stdout, s)
		fmt.Fprintf(a.stderr, "the result is in %s\n", dir)
	} else {
		err = report.Text(a.stdout, s, dir)
	}
	if err == nil && !s.Validity.Valid {
		return errInvalid
	}
	return err
}
