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
	targets, protocol := "", string(trial.ProtocolBench)
	cmd := &cobra.Command{
		Use:   "load [STORE] --target URL,...",
		Short: "Drive servers that already run, and report",
		Long: `Drive servers that already run, and report: bench servers, or, with
--protocol dtm, any that speak dtm's HTTP API, as bench coordinator and dtm do.
Each request then submits a saga with a gid of its own and waits for its end; its
branches are empty, or those of a bench server that is the target.

With the store that is behind them (a server that sagas of ours are in; its prefix
or schema as configured), its costs are measured and it is audited afterwards. A token that
is configured (SAGABENCH_SERVER_TOKEN) is shown to the servers.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.load(cmd.Context(), targets, trial.Protocol(protocol), args)
		},
	}
	cmd.Flags().StringVar(&targets, "target", "", "URLs of servers, as http://10.0.0.1:8080, separated by commas")
	cmd.Flags().StringVar(&protocol, "protocol", protocol, "of the servers: bench, or dtm for dtm's HTTP API")
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) load(ctx context.Context, targets string, protocol trial.Protocol, stores []string) error {
	if targets == "" {
		return errors.New("--target: which servers? bench STORE starts one and prints its URL")
	}
	if err := protocol.Validate(); err != nil {
		return err
	}
	driver := "load"
	var target *open.Target
	if len(stores) == 1 {
		t, err := a.target(stores[0])
		if err != nil {
			return err
		}
		if t.Embedded() {
			return fmt.Errorf("store: %s is held by its bench server: leave it out here, and run bench check when the server has stopped", stores[0])
		}
		target, driver = &t, t.Driver
	}
	cfg, err := a.trialConfig(driver)
	if err != nil {
		return err
	}
	cfg.Protocol = protocol
	return a.try(cfg, func(cfg trial.Config) (report.Summary, error) {
		return trial.Load(ctx, cfg, strings.Split(targets, ","), target)
	})
}
