package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/server"
	"sagabench/store/open"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve STORE",
		Short: "Run the bench server of an app host, and print how to drive it",
		Args:  exactlyOneStore,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.serve(cmd.Context(), args[0], true) },
	}
	a.serverFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) coordinatorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "coordinator STORE",
		Short: "Run the saga coordinator alone, behind dtm's HTTP API",
		Long: `Run the saga coordinator alone, behind dtm's HTTP API: programs that drive dtm's
sagas drive it unchanged. It also serves /ui, /metrics and /healthz.

It listens on this machine only, unless there is a token: an address that other
machines reach needs one, in SAGABENCH_SERVER_TOKEN or server.token_file.`,
		Args: exactlyOneStore,
		RunE: func(cmd *cobra.Command, args []string) error { return a.serve(cmd.Context(), args[0], false) },
	}
	a.serverFlags(cmd)
	return cmd
}

// serve runs a server, with or without the bench's endpoints, until ctx ends.
func (a *app) serve(ctx context.Context, name string, bench bool) error {
	target, err := a.standingTarget(name)
	if err != nil {
		return err
	}
	cfg := a.serverConfig(bench)
	release, err := boundMemory()
	if err != nil {
		return err
	}
	defer release()
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	target.SetLog(log)
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
	fmt.Fprintf(a.stdout, "%s %s, %s: %s\n", settings.Driver, settings.Version, settings.Durability, settings.Meaning())
	fmt.Fprintf(a.stdout, "%s%s\n", servingPrefix, srv.URL())
	if bench {
		fmt.Fprintf(a.stdout, "drive it:  %s\n", server.VegetaCommand(srv.URL(), cfg.Scenario.Query(), a.options.Load.InFlight, cfg.Token.IsSet()))
	} else {
		fmt.Fprintf(a.stdout, "use it:    dtm's clients take %s/api/dtmsvr\n", srv.URL())
	}
	fmt.Fprintf(a.stdout, "watch it:  %s/ui and %[1]s/metrics\n", srv.URL())
	return srv.Run(ctx)
}

func (a *app) serverConfig(bench bool) server.Config {
	o := a.options
	cfg := server.DefaultConfig()
	cfg.Listen = cmp.Or(o.Server.Listen, server.ListenCoordinator)
	if bench {
		cfg.Listen = cmp.Or(o.Server.Listen, server.ListenBench)
	}
	cfg.Bench = bench
	cfg.Pprof = o.Server.Pprof
	cfg.Token = o.Server.Token
	cfg.AdminToken = o.Server.AdminToken
	cfg.MaxConns = o.Server.MaxConns
	cfg.Wait = o.Server.MaxWait
	cfg.MaxConnsPerPeer = o.Server.MaxPerPeer
	cfg.Drain = o.Server.Drain
	cfg.Grace = o.Server.Grace
	cfg.BranchAllow = o.Coordinator.BranchAllow
	cfg.BranchConns = o.Coordinator.BranchConns
	cfg.Scenario = a.scenario()
	return cfg
}

// servingPrefix begins the line by which bench run learns where its child
// listens.
const servingPrefix = "serving on "

var errOneStore = fmt.Errorf("want one store: %s", open.Names)

func exactlyOneStore(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errOneStore
	}
	return nil
}
