package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/bench/internal/trial"
	"sagabench/deploy/lab"
	"sagabench/lua"
	"sagabench/lua/microbench"
	"sagabench/store/open"
)

// luaOptions are the flags of bench lua.
type luaOptions struct {
	url      string
	start    bool
	binaries []string
	against  string
	duration time.Duration
}

func (a *app) luaCommand() *cobra.Command {
	o := luaOptions{duration: 45 * time.Second}
	cmd := &cobra.Command{
		Use:   "lua [--redis URL | --start | --redis-server PATH...]",
		Short: "Price each script: CPU of Redis per call, where it goes, and the ceiling that follows",
		Long: `Price each script: what a call costs Redis, alone and in batches, on small and large
sagas and due indexes; how much of it is network, dispatch, Lua and which command;
how many sagas a core can carry; and how near a run of sagas comes to that.

All keys are under a prefix of their own and removed at the end. A Redis that is
not started for it should have no other load: its whole CPU is counted.`,
		Example: `  bench lua --start
  bench lua --redis-server /opt/redis-6.2/redis-server --redis-server redis-server
  bench lua --start --against ../other/lua`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.lua(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "redis", "", "URL of the Redis to measure (default: as configured)")
	f.BoolVar(&o.start, "start", false, "start a Redis for it, from the binary on PATH")
	f.StringArrayVar(&o.binaries, "redis-server", nil, "start a Redis from this binary; several are measured in turns")
	f.StringVar(&o.against, "against", "", "directory of other scripts, to be compared with ours in turns; nothing else is measured then")
	f.DurationVar(&o.duration, "duration", o.duration, "how long rounds of probes are repeated, per Redis; runs of sagas come on top")
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-lua)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the tables")
	return cmd
}

// luaServer is a Redis that is measured.
type luaServer struct {
	target open.Target
	binary string      // it was started from; empty: it was not
	lab    *lab.Server // nil: likewise
	bench  *microbench.Bench
}

// luaRun is a measurement under way.
type luaRun struct {
	*app
	options  luaOptions
	scripts  []lua.Script // to compare with; nil: none
	dir      string
	progress *luaProgress
	started  time.Time
	servers  []*luaServer
	results  []microbench.Result // of those that are closed
	trials   []result.Summary
	warnings []string
}

func (a *app) lua(ctx context.Context, o luaOptions) error {
	r := &luaRun{app: a, options: o, started: time.Now(), progress: a.newLuaProgress(o.duration)}
	if err := r.check(); err != nil {
		return err
	}
	err := r.measure(ctx)
	r.progress.done()
	incomplete := ""
	switch {
	case len(r.results) == 0 && ctx.Err() != nil:
		return errors.New("interrupted before anything was measured")
	case len(r.results) == 0:
		return err
	case ctx.Err() != nil:
		incomplete = "interrupted"
	case err != nil:
		incomplete = err.Error()
	}
	return r.finish(context.WithoutCancel(ctx), incomplete)
}

// check does what can be done before anything is started.
func (r *luaRun) check() error {
	o := r.options
	starts := o.start || len(o.binaries) > 0
	if o.url != "" && starts {
		return errors.New("--redis: it names a server that runs; --start and --redis-server start one")
	}
	if o.duration <= 0 {
		return fmt.Errorf("--duration: %v, must be more than 0", o.duration)
	}
	if o.against != "" {
		scripts, err := lua.ReadDir(os.DirFS(o.against))
		if err != nil {
			return fmt.Errorf("--against: %w", err)
		}
		r.scripts = scripts
	}
	target, err := r.target(cmp.Or(o.url, open.Redis))
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	if target.Driver != open.Redis {
		return fmt.Errorf("--redis: %s is no Redis", open.Redact(o.url))
	}
	r.dir = r.out
	if r.dir == "" {
		r.dir = filepath.Join(resultsDir, result.RunID(r.started, "lua"))
	}
	if err := result.CheckDir(r.dir); err != nil {
		return err
	}
	if !starts {
		r.servers = []*luaServer{{target: target}}
		return nil
	}
	binaries := o.binaries
	if len(binaries) == 0 {
		binaries = []string{""}
	}
	for _, binary := range binaries {
		r.servers = append(r.servers, &luaServer{target: target, binary: cmp.Or(binary, "redis-server")})
	}
	return nil
}

// measure goes through all that there is to measure. What was measured when it
// ends early is in results.
func (r *luaRun) measure(ctx context.Context) (err error) {
	defer func() {
		for _, s := range r.servers {
			err = errors.Join(err, r.close(s))
		}
	}()
	for _, s := range r.servers {
		if err := r.open(ctx, s, nil, false); err != nil {
			return err
		}
	}
	if err := r.rounds(ctx, r.servers, r.options.duration); err != nil || r.scripts != nil {
		return err
	}
	for _, s := range r.servers {
		if err := s.bench.Memory(ctx); err != nil {
			return err
		}
	}
	repeats := 1
	if len(r.servers) == 1 && r.trialLength() == longTrial {
		repeats = 3
	}
	for range repeats {
		for _, s := range r.servers {
			if err := r.agree(ctx, s); err != nil {
				return err
			}
		}
	}
	return r.threads(ctx)
}

// windows is how many there are in about ten rounds, with the time between them: a
// short measurement has shorter ones rather than too few rounds.
const windows = 3750

// open starts the server, if it is to be, and prepares it.
func (r *luaRun) open(ctx context.Context, s *luaServer, settings map[string]string, brief bool) (err error) {
	if s.binary != "" {
		if s.lab, err = lab.Redis.Start(ctx, lab.Config{Binary: s.binary, Settings: settings}); err != nil {
			return err
		}
		s.target.SetURL(s.lab.URL())
	}
	cfg := microbench.Default()
	cfg.URL, cfg.Against, cfg.Brief, cfg.Functions = s.target.URL(), r.scripts, brief, s.lab != nil
	cfg.Window = min(cfg.Window, max(time.Millisecond, r.options.duration/windows))
	if r.short() {
		cfg.Due = cfg.Due[:1]
	}
	cfg.Progress = r.progress.show
	s.bench, err = microbench.Open(ctx, cfg)
	return err
}

func (r *luaRun) close(s *luaServer) (err error) {
	if s.bench != nil {
		if result := s.bench.Result(); len(result.Prices) > 0 {
			r.results = append(r.results, result)
		}
		err = s.bench.Close()
		s.bench = nil
	}
	if s.lab != nil {
		err = errors.Join(err, s.lab.Stop())
		s.lab = nil
	}
	return err
}

// rounds takes the servers in turns, A B B A, for so long each, and once at least.
// Scripts that are compared need rounds in pairs.
func (r *luaRun) rounds(ctx context.Context, servers []*luaServer, each time.Duration) error {
	planned := each * time.Duration(len(servers))
	r.progress.begin(planned)
	order := slices.Clone(servers)
	for began, n := time.Now(), 1; ; n++ {
		for _, s := range order {
			if err := s.bench.Round(ctx); err != nil {
				return err
			}
		}
		if time.Since(began) >= planned && (r.scripts == nil || n%2 == 0) {
			return nil
		}
		slices.Reverse(order)
	}
}

// A run of sagas takes no more than a part of a measurement that is to be short.
const (
	longTrial  = 3 * time.Second
	trialShare = 15
)

// short is a measurement that is shorter than such a run. It leaves out what would
// take longer than all the rest: a million sagas that are due, four threads.
func (r *luaRun) short() bool { return r.options.duration < longTrial }

func (r *luaRun) trialLength() time.Duration {
	return min(longTrial, max(time.Second, r.options.duration/trialShare))
}

// agree runs sagas on the server, and prices the calls that they made just
// afterwards. A run that cannot be made is said, and the rest goes on.
func (r *luaRun) agree(ctx context.Context, s *luaServer) error {
	before, err := s.bench.Look()
	if err != nil {
		return err
	}
	summary, err := r.trial(ctx, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.warn("run of sagas: %v", err)
		return nil
	}
	after, err := s.bench.Look()
	if err != nil {
		return err
	}
	r.trials = append(r.trials, summary)
	c := summary.CostPerSaga
	switch {
	case !summary.Validity.Valid:
		r.warn("run of sagas: not valid: %s", summary.Validity.Warnings[0])
		return nil
	case c.StoreCPUUS == nil || c.StoreCalls == nil || c.StoreRoundTrips == nil:
		r.warn("run of sagas: its costs could not be measured")
		return nil
	}
	_, err = s.bench.Agree(ctx, before, after, microbench.Run{
		Steps: summary.Run.Scenario.Steps, SagasPerS: summary.Load.AchievedPerS,
		CPUUS: *c.StoreCPUUS, Calls: *c.StoreCalls, RoundTrips: *c.StoreRoundTrips,
	})
	if err != nil && ctx.Err() == nil {
		r.warn("the calls of the run: %v", err)
		return nil
	}
	return err
}

// trial is bench run redis on the server, a short one.
func (r *luaRun) trial(ctx context.Context, s *luaServer) (result.Summary, error) {
	cfg, err := r.trialConfig(open.Redis)
	if err != nil {
		return result.Summary{}, err
	}
	cfg.Dir = filepath.Join(r.dir, "runs", strconv.Itoa(len(r.trials)+1))
	cfg.Scenario = server.DefaultConfig().Scenario
	cfg.Load.Rate, cfg.Load.Duration, cfg.Load.Warmup = load.Profile{}, r.trialLength(), r.trialLength()/3
	cfg.Status = r.progress.status
	if s.lab != nil {
		cfg.StorePID, cfg.StoreDir = s.lab.PID(), s.lab.Dir()
	}
	child, err := r.child(open.Redis)
	if err != nil {
		return result.Summary{}, err
	}
	return trial.Run(ctx, cfg, trial.Own(s.target, child))
}

// threads repeats the essential with several threads for input and output, on
// servers that have them and that are ours to start.
func (r *luaRun) threads(ctx context.Context) error {
	counts := []string{"2", "4"}
	if r.short() {
		counts = counts[:1]
	}
	for _, s := range slices.Clone(r.servers) {
		if s.lab == nil || s.bench.Result().Server.Settings["io-threads"] == "" {
			continue
		}
		for _, n := range counts {
			more := &luaServer{target: s.target, binary: s.binary}
			r.servers = append(r.servers, more) // to be closed
			if err := r.open(ctx, more, map[string]string{"io-threads": n}, true); err != nil {
				return err
			}
			if err := r.rounds(ctx, []*luaServer{more}, r.trialLength()); err != nil {
				return err
			}
			if err := r.agree(ctx, more); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *luaRun) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}
