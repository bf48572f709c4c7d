package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/microbench"
	"sagabench/bench/internal/progress"
	"sagabench/bench/internal/result"
	"sagabench/lua"
	"sagabench/store/open"
)

func (a *app) luaCommand() *cobra.Command {
	cfg := microbench.DefaultConfig()
	var url, against string
	var start bool
	cmd := &cobra.Command{
		Use:   "lua [--redis URL | --start | --redis-server PATH...]",
		Short: "Price each script: CPU of Redis per call, its causes, and the resulting ceiling",
		Long: `Price each script: what a call costs Redis, alone and in batches, with small and large
sagas and due indexes; how much of it is network, dispatch, Lua and each command;
and how many sagas one core can carry.

All keys have a random prefix and are removed at the end. A Redis that was not started
by this command should have no other load, because its whole CPU is counted.`,
		Example: `  bench lua --start
  bench lua --redis-server /opt/redis-6.2/redis-server --redis-server redis-server
  bench lua --start --nodes 3
  bench lua --start --against ../other/lua`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if start && len(cfg.Binaries) == 0 {
				cfg.Binaries = []string{"redis-server"}
			}
			return a.lua(cmd.Context(), cfg, url, against)
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "redis", "", "URL of the Redis to measure (default: as configured)")
	f.BoolVar(&start, "start", false, "start a Redis for it, from the binary on PATH")
	f.StringArrayVar(&cfg.Binaries, "redis-server", nil, "start a Redis from this binary; several are measured in interleaved rounds")
	nodesFlag(f, &cfg.Nodes)
	f.StringVar(&against, "against", "", "directory of other scripts to compare with ours in interleaved rounds; nothing else is measured then")
	f.DurationVar(&cfg.Duration, "duration", cfg.Duration, "how long rounds are repeated, per Redis")
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-lua)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the tables")
	return cmd
}

func (a *app) lua(ctx context.Context, cfg microbench.Config, url, against string) (err error) {
	if url != "" && len(cfg.Binaries) > 0 {
		return errors.New("--redis: it names a server that runs; --start and --redis-server start one")
	}
	switch {
	case cfg.Nodes < 1 || cfg.Nodes > backend.MaxNodes:
		return fmt.Errorf("--nodes: %d, must be 1 to %d", cfg.Nodes, backend.MaxNodes)
	case cfg.Nodes > 1 && len(cfg.Binaries) == 0:
		return errors.New("--nodes: it is for --start and --redis-server; --redis may name a master of another cluster")
	}
	if cfg.Duration <= 0 {
		return fmt.Errorf("--duration: %v, must be more than 0", cfg.Duration)
	}
	if against != "" {
		if cfg.Against, err = lua.ReadDir(os.DirFS(against)); err != nil {
			return fmt.Errorf("--against: %w", err)
		}
	}
	target, err := a.target(cmp.Or(url, open.Redis))
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	if target.Driver != open.Redis {
		return fmt.Errorf("--redis: %s is no Redis", open.Redact(url))
	}
	cfg.ID, cfg.Command, cfg.URL = result.RunID(time.Now(), "lua"), a.command(), target.URL()
	dir := cmp.Or(a.out, filepath.Join(resultsDir, cfg.ID))
	if err := result.CheckDir(dir); err != nil {
		return err
	}
	shown := &luaProgress{Display: progress.NewDisplay(a.stderr)}
	cfg.Progress = shown.show
	summary, err := microbench.Run(ctx, cfg)
	shown.EndBar()
	if err != nil {
		return err
	}
	return a.writeAndShow(summary, summary.Validity, summary.Document(dir), dir)
}

// luaProgress shows the progress of bench lua: a bar on a terminal, a line now and then
// elsewhere.
type luaProgress struct {
	progress.Display
	doing string    // printed last
	said  time.Time // when the last line was printed
}

func (p *luaProgress) show(now microbench.Progress) {
	if now.Round == 0 {
		if now.Doing != p.doing {
			p.doing = now.Doing
			p.EndBar()
			fmt.Fprintln(p.Out, now.Doing)
		}
		return
	}
	text := fmt.Sprintf("round %d, %2d%%: %s", now.Round, 100*now.Done/now.Of, now.Doing)
	switch {
	case p.Terminal:
		p.ShowBar(now.Elapsed, now.Planned, "measuring", text)
	case time.Since(p.said) >= progress.LineEvery:
		p.said = time.Now()
		fmt.Fprintf(p.Out, "measuring  %3.0f/%.0f s %s\n", now.Elapsed.Seconds(), now.Planned.Seconds(), text)
	}
}
