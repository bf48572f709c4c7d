package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/loss"
	"sagabench/bench/internal/process"
	"sagabench/bench/internal/server"
	"sagabench/internal/format"
	"sagabench/store"
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
	// For crashes of the machine, in package loss.
	cmd.Flags().StringVar(&a.pebbleSyncLog, loss.SyncLogFlag, "", "file that says what the embedded store has synced")
	_ = cmd.Flags().MarkHidden(loss.SyncLogFlag) // it exists
	return cmd
}

func (a *app) coordinatorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "coordinator STORE",
		Short: "Run the saga coordinator alone, behind dtm's HTTP API",
		Long: `Run the saga coordinator alone, behind dtm's HTTP API: programs that drive dtm's
sagas drive it unchanged. It also serves /ui, /metrics, /livez and /readyz.

It listens on loopback by default. An address that other machines reach needs a token,
in SAGABENCH_SERVER_TOKEN or server.token_file, or client certificates
(server.client_ca).`,
		Args: exactlyOneStore,
		RunE: func(cmd *cobra.Command, args []string) error { return a.serve(cmd.Context(), args[0], false) },
	}
	a.serverFlags(cmd)
	return cmd
}

// serve runs a server until ctx ends, with the bench's endpoints or without.
func (a *app) serve(ctx context.Context, name string, bench bool) error {
	target, err := a.standingTarget(name)
	if err != nil {
		return err
	}
	cfg := a.serverConfig(bench)
	release, err := process.BoundMemory()
	if err != nil {
		return err
	}
	defer release()
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	target.Config.Log, target.Config.Pebble.SyncLog = log, a.pebbleSyncLog
	listener, err := server.Listen(cfg) // before the store is touched
	if err != nil {
		return err
	}
	defer listener.Close()
	s, err := a.openStore(ctx, target, cfg, listener, log)
	if err != nil || s == nil {
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
	fmt.Fprintf(a.stdout, "%s %s, %s: %s\n", settings.Driver, format.Printable(settings.Version), settings.Durability, settings.Meaning())
	fmt.Fprintf(a.stdout, "%s%s\n", servingPrefix, srv.URL())
	if bench {
		drive := server.VegetaCommand{URL: srv.URL(), Query: cfg.Scenario.Query(), WithToken: cfg.Tokens.AreSet()}
		fmt.Fprintf(a.stdout, "drive it:  %s\n", drive.Closed(a.options.Load.InFlight))
		fmt.Fprintf(a.stdout, "at a rate, for bench report app.bin:\n%s\n", strings.Join(drive.Open(), "\n"))
		fmt.Fprintf(a.stdout, "two app hosts, on each load host:\n%s\n", drive.ManyHosts())
		fmt.Fprintf(a.stdout, "or:        %s load --target %s --rate 500/s\n", programWords, srv.URL())
		fmt.Fprintf(a.stdout, "check it:  %s check %s\n", programWords, open.Redact(name))
	} else {
		fmt.Fprintf(a.stdout, "use it:    dtm's clients take %s/api/dtmsvr\n", srv.URL())
	}
	fmt.Fprintf(a.stdout, "watch it:  %s/ui and %[1]s/metrics\n", srv.URL())
	return srv.Run(ctx)
}

// reopenAfter is the pause between attempts to open a store that does not answer.
const reopenAfter = 500 * time.Millisecond

// openStore opens the store of a server. A coordinator waits for one that does not answer,
// and is live but not ready meanwhile. Returns nil if ctx ends first.
func (a *app) openStore(ctx context.Context, target open.Target, cfg server.Config, l net.Listener, log *slog.Logger) (store.Store, error) {
	s, err := target.Open(ctx)
	wait := a.options.StoreWait
	if err == nil || cfg.Bench || wait <= 0 || neverOpens(err) {
		return s, err
	}
	log.Warn("the store does not answer; waiting for it", "for", wait, "error", err)
	starting, err2 := server.NewStarting(cfg, l)
	if err2 != nil {
		return nil, err2
	}
	defer starting.Stop()
	for deadline := time.Now().Add(wait); err != nil; {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(reopenAfter):
		}
		s, err = target.Open(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, nil
		case err != nil && neverOpens(err):
			return nil, err
		case err != nil && time.Now().After(deadline):
			return nil, fmt.Errorf("coordinator.store_wait: no store within %v: %w", wait, err)
		}
	}
	log.Info("the store answers")
	return s, nil
}

// neverOpens reports whether it is useless to wait for a store that does not open. A missing
// user or database is worth waiting for: another program may create it.
func neverOpens(err error) bool {
	return errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrUnsafe)
}

func (a *app) serverConfig(bench bool) server.Config {
	cfg := a.options.Server.Config
	cfg.Bench = bench
	cfg.Listen = cmp.Or(cfg.Listen, server.ListenCoordinator)
	if bench {
		cfg.Listen = cmp.Or(a.options.Server.Listen, server.ListenBench)
	}
	cfg.Tokens, cfg.AdminTokens = a.options.Tokens(), a.options.AdminTokens()
	return cfg
}

// servingPrefix begins the line that tells bench run where its child listens.
const servingPrefix = "serving on "

var errOneStore = fmt.Errorf("want one store: %s", open.Names)

func exactlyOneStore(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errOneStore
	}
	return nil
}
