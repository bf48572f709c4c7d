package loadmetrics_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/load/loadmetrics"
	"sagabench/bench/internal/server"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
)

const grafana = "../../../../deploy/grafana/"

type dashboard struct {
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(grafana + "sagabench.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// startServer runs a bench server until the test ends.
func startServer(t *testing.T) (url string) {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	listener, err := server.Listen(cfg)
	require.NoError(t, err)
	s, err := server.New(cfg, server.Deps{
		Listener: listener, Store: openPooled(t), Saga: saga.DefaultConfig(), Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return s.URL()
}

// pooled is an embedded store that says what those say whose calls share connections: of
// what any store counts nothing is missing.
type pooled struct {
	store.Store
	store.CounterSource
}

func openPooled(t *testing.T) pooled {
	s := testkit.OpenPebble(t)
	return pooled{s, s.(store.CounterSource)}
}

func (pooled) Connections() (most int, waited time.Duration) { return 16, time.Second }

var (
	selector = regexp.MustCompile(`([a-z_]+)\{job="([a-z-]+)"\}`)
	aLabel   = regexp.MustCompile(`by \(([a-z]+)\)`)
)

// Every metric that the dashboard asks for is one that a bench server or a load
// really has, with the labels that it is told apart by.
func TestDashboard_AsksForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	m := loadmetrics.New()
	served := httptest.NewServer(m.Handler(nil))
	t.Cleanup(served.Close)
	serverURL := startServer(t)
	for _, target := range []string{serverURL + "/bench/saga?steps=2", "http://127.0.0.1:1/"} { // and some errors
		cfg := config(t, target, m)
		cfg.Rate, cfg.InFlight = load.Profile{}, 1
		cfg.Duration /= 5
		_, err := load.Run(t.Context(), cfg)
		require.NoError(t, err)
	}
	jobs := map[string]map[string]*dto.MetricFamily{
		"sagabench": scrape(t, serverURL+"/metrics"), "sagabench-load": scrape(t, served.URL+"/metrics"),
	}
	asked := map[string]bool{}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			found := selector.FindAllStringSubmatch(target.Expr, -1)
			require.NotEmpty(t, found, target.Expr)
			require.Len(t, found, strings.Count(target.Expr, "{"), target.Expr)
			require.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), target.Expr)
			for _, selected := range found {
				name, job := selected[1], selected[2]
				family := family(jobs[job], name)
				require.NotNil(t, family, "%s has no %s, which %q asks for", job, name, panel.Title)
				asked[family.GetName()] = true
				isBucket := strings.HasSuffix(name, "_bucket")
				require.Equal(t, isBucket, strings.HasPrefix(target.Expr, "histogram_quantile("), target.Expr)
				for _, by := range aLabel.FindAllStringSubmatch(target.Expr, -1) {
					if by[1] == "le" {
						continue
					}
					require.Equal(t, by[1], family.GetMetric()[0].GetLabel()[0].GetName(), target.Expr)
					require.Contains(t, target.LegendFormat, "{{"+by[1]+"}}")
				}
			}
		}
	}
	for job, families := range jobs {
		for name := range families {
			if strings.HasPrefix(name, "sagabench_") && name != "sagabench_branch_calls_total" { // the server's own test endpoint
				require.True(t, asked[name], "no panel shows %s of %s", name, job)
			}
		}
	}
}

// family finds the metric of a name in a query: a histogram's has an ending.
func family(families map[string]*dto.MetricFamily, name string) *dto.MetricFamily {
	if f, ok := families[name]; ok {
		return f
	}
	for _, ending := range []string{"_bucket", "_sum", "_count"} {
		base, ok := strings.CutSuffix(name, ending)
		if f := families[base]; ok && f != nil && (f.GetType() == dto.MetricType_HISTOGRAM || ending != "_bucket" && f.GetType() == dto.MetricType_SUMMARY) {
			return f
		}
	}
	return nil
}

func TestDashboard_PanelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

func TestPrometheusConfig_HasTheDashboardsJobs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(grafana + "prometheus.yml")
	require.NoError(t, err)
	var jobs []string
	for _, job := range regexp.MustCompile(`(?m)^  - job_name: (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		jobs = append(jobs, job[1])
	}
	require.Equal(t, []string{"sagabench", "sagabench-load"}, jobs)
	require.Contains(t, string(text), server.ListenBench)
	require.Contains(t, string(text), server.ListenCoordinator)
}
