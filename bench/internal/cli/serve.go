package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/server"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve STORE",
		Short: "Run the bench server of an app host, and print how to drive it",
		Args:  exactlyOneStore,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.serve(cmd.Context(), args[0]) },
	}
	a.serverFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) serve(ctx context.Context, name string) error {
	target, err := a.standingTarget(name)
	if err != nil {
		return err
	}
	cfg := server.DefaultConfig()
	cfg.Listen = a.options.Server.Listen
	cfg.Public = a.options.Server.Public
	cfg.Pprof = a.options.Server.Pprof
	cfg.BranchAllow = a.options.Coordinator.BranchAllow
	cfg.Scenario = a.scenario()

	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	target.Config.Pebble.Log = log
	listener, err := server.Listen(cfg) // before the store is touched
	if err != nil {
		return err
	}
	defer listener.Close()
	s, err := target.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	settings, err := s.Settings(ctx)
	if err != nil {
		return err
	}
	srv, err := server.New(cfg, server.Deps{Listener: listener, Store: s, Saga: a.sagaConfig(), Logger: log})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s %s, %s: %s\n", settings.Driver, settings.Version, settings.Durability, settings.Durability.Meaning())
	fmt.Fprintf(a.stdout, "%s%s\n", servingPrefix, srv.URL())
	fmt.Fprintf(a.stdout, "drive it:  %s\n", server.VegetaCommand(srv.URL(), cfg.Scenario.Query(), a.options.Load.InFlight))
	fmt.Fprintf(a.stdout, "watch it:  curl %s/metrics\n", srv.URL())
	return srv.Run(ctx)
}

// servingPrefix begins the line by which bench run learns where its child
// listens.
const servingPrefix = "serving on "

func exactlyOneStore(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one store: pebble, pebble:DIR, redis, or redis://HOST:PORT")
	}
	return nil
}
