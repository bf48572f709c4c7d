package cli

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/load/loadmetrics"
	"sagabench/bench/internal/server"
)

func (a *app) metricsFlag(cmd *cobra.Command) {
	o := &a.options.Load
	cmd.Flags().StringVar(&o.Metrics, "metrics", o.Metrics, "HOST:PORT where Prometheus reads what the load does, while it runs; for other machines it needs a token")
}

// serveMetrics serves the metrics of a load until stop is called, with --metrics.
func (a *app) serveMetrics(cfg *load.Config) (stop func(), err error) {
	if a.options.Load.Metrics == "" {
		return func() {}, nil
	}
	at := a.serverConfig(false)
	at.Listen = a.options.Load.Metrics
	listener, err := server.Listen(at) // whatever holds for a server
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	metrics := loadmetrics.New()
	cfg.Observer = metrics
	if warning := server.ClearText(at, listener); warning != "" {
		fmt.Fprintf(a.stderr, "warning: %s\n", warning)
	}
	scheme := "http"
	if at.TLS.AreSet() {
		cfg, err := at.TLS.Server()
		if err != nil {
			return nil, fmt.Errorf("--metrics: %w", errors.Join(err, listener.Close()))
		}
		if cfg.ClientCAs != nil {
			cfg.ClientAuth = tls.RequireAndVerifyClientCert
		}
		scheme, listener = "https", tls.NewListener(listener, cfg)
	}
	fmt.Fprintf(a.stderr, "metrics of the load: %s://%s/metrics\n", scheme, listener.Addr())
	return metrics.Serve(listener, a.options.Tokens()), nil
}
