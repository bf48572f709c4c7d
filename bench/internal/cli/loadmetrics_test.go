package cli

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/internal/secret"
)

func TestServeMetrics_IsThereOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	a := &app{options: defaults(), stderr: &stderr}
	var cfg load.Config
	stop, err := a.serveMetrics(&cfg)
	require.NoError(t, err)
	stop()
	require.Nil(t, cfg.Observer)

	a.options.Load.Metrics = "127.0.0.1:0"
	stop, err = a.serveMetrics(&cfg)
	require.NoError(t, err)
	cfg.Observer.RequestSent()
	url := regexp.MustCompile(`http://\S+`).FindString(stderr.String())
	response, err := http.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, string(text), "\nsagabench_load_in_flight 1\n")
	stop()
	_, err = http.Get(url)
	require.Error(t, err)
}

func TestServeMetrics_OtherMachinesNeedTheToken(t *testing.T) {
	t.Parallel()
	a := &app{options: defaults(), stderr: io.Discard}
	a.options.Load.Metrics = "0.0.0.0:0"
	_, err := a.serveMetrics(&load.Config{})
	require.ErrorContains(t, err, "--metrics: ")
	require.ErrorContains(t, err, "needs a token")
	a.options.Server.Token = secret.New("the-token-of-the-tests")
	stop, err := a.serveMetrics(&load.Config{})
	require.NoError(t, err)
	stop()
}
