package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/report"
	"sagabench/bench/internal/trial"
	"sagabench/store/open"
)

func (a *app) loadCommand() *cobra.Command {
	targets := ""
	cmd := &cobra.Command{
		Use:   "load [STORE] --target URL,...",
		Short: "Drive bench servers that already run, and report",
		Long: `Drive bench servers that already run, and report.

With the store that is behind them (a Redis; its prefix as configured), its costs
are measured and it is audited afterwards.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.load(cmd.Context(), targets, args) },
	}
	cmd.Flags().StringVar(&targets, "target", "", "URLs of bench servers, as http://10.0.0.1:8080, separated by commas")
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) load(ctx context.Context, targets string, stores []string) error {
	if targets == "" {
		return errors.New("--target: which bench servers? bench STORE starts one and prints its URL")
	}
	driver := "load"
	var target *open.Target
	if len(stores) == 1 {
		t, err := a.target(stores[0])
		if err != nil {
			return err
		}
		if t.Driver == open.Pebble {
			return fmt.Errorf("store: %s is held by its bench server: leave it out here, and run bench check when the server has stopped", stores[0])
		}
		target, driver = &t, t.Driver
	}
	cfg, err := a.trialConfig(driver)
	if err != nil {
		return err
	}
	return a.try(cfg, func(cfg trial.Config) (report.Summary, error) {
		return trial.Load(ctx, cfg, strings.Split(targets, ","), target)
	})
}
