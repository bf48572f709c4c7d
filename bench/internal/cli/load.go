package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/session"
	"sagabench/store/open"
)

func (a *app) loadCommand() *cobra.Command {
	targets, protocol := "", string(session.ProtocolBench)
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
			return a.load(cmd.Context(), targets, session.Protocol(protocol), args)
		},
	}
	targetsFlag(cmd, &targets)
	cmd.Flags().StringVar(&protocol, "protocol", protocol, "of the servers: bench, or dtm for dtm's HTTP API")
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

const targetFlag = "target"

// targetsFlag names servers that run already.
func targetsFlag(cmd *cobra.Command, targets *string) {
	cmd.Flags().StringVar(targets, targetFlag, "", "URLs of servers that run, as http://10.0.0.1:8080, separated by commas")
}

func (a *app) load(ctx context.Context, targets string, protocol session.Protocol, stores []string) error {
	if err := protocol.Validate(); err != nil {
		return err
	}
	running, err := a.running(targets, protocol, stores, "load")
	if err != nil {
		return err
	}
	return a.measureAndShow(ctx, running)
}

// running prepares servers that run already. Without a store, the result is named after
// the command.
func (a *app) running(targets string, protocol session.Protocol, stores []string, command string) (setup, error) {
	if targets == "" {
		return setup{}, errors.New("--target: which servers? bench STORE starts one and prints its URL")
	}
	name := command
	var target *open.Target
	if len(stores) == 1 {
		t, err := a.target(stores[0])
		if err != nil {
			return setup{}, err
		}
		if t.Embedded() {
			return setup{}, fmt.Errorf("store: %s is held by its bench server: leave it out here, and run bench check when the server has stopped", stores[0])
		}
		target, name = &t, t.Driver
	}
	a.warnOfClearText(strings.Split(targets, ","))
	cfg, err := a.sessionConfig(name)
	return setup{cfg: cfg, servers: &session.External{URLs: strings.Split(targets, ","), Store: target, Protocol: protocol}, stop: func() {}}, err
}

// warnOfClearText names servers on other machines to which the token is sent without TLS.
func (a *app) warnOfClearText(targets []string) {
	if !a.options.Tokens().AreSet() {
		return
	}
	for _, target := range targets {
		u, err := url.Parse(target)
		if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
			fmt.Fprintf(a.stderr, "warning: the token travels in clear to %s: use https\n", u.Host)
		}
	}
}
