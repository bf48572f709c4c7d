package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/progress"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/internal/config"
	"sagabench/internal/secret"
	"sagabench/store/open"
)

// resultsDir holds the results of runs that name no other place.
const resultsDir = "sagabench-results"

// runOptions are the arguments of bench run that are not settings.
type runOptions struct {
	store string
	start backend.Start
	fill  int64
}

// flags binds the flags of how the store is made ready.
func (o *runOptions) flags(f *pflag.FlagSet) {
	startFlags(f, &o.start)
	f.Int64Var(&o.fill, "fill", 0, "finished sagas to put into the store before, which are not measured")
}

func (a *app) runFlags(cmd *cobra.Command, o *runOptions) {
	o.flags(cmd.Flags())
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
}

// setStore takes the arguments that are not flags: one store, or none for the default.
func (o *runOptions) setStore(args []string) error {
	switch len(args) {
	case 0:
		o.store = defaultStore
	case 1:
		o.store = args[0]
	default:
		return errOneStore
	}
	return nil
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [STORE]",
		Short: "Start a bench server, drive it, audit the store, report",
		Long: `Start a bench server, drive it, audit the store, report. Without a store: pebble.

A URL with a password is better set by the environment: anybody on this machine can
read the arguments of its programs.`,
		Example: `  bench run redis --start --durability D3
  bench run redis --start --nodes 3 --replicas 1
  bench run mysql --start --set innodb_flush_log_at_trx_commit=2
  bench run postgres --start --set synchronous_commit=off
  SAGABENCH_MYSQL_URL=$(cat url) bench run mysql --duration 30s`,
		Args: func(_ *cobra.Command, args []string) error { return o.setStore(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), o) },
	}
	a.runFlags(cmd, &o)
	return cmd
}

// defaultStore needs no server.
const defaultStore = open.Pebble

func (a *app) run(ctx context.Context, o runOptions) error {
	own, err := a.setUp(ctx, o)
	if err != nil {
		return err
	}
	defer own.stop()
	return a.measureAndShow(ctx, own)
}

// setup is what a command needs that measures servers.
type setup struct {
	cfg       session.Config
	servers   session.Servers
	flushers  int    // batches that the servers may have in progress at each partition of the store; 0: unknown
	stop      func() // stops the store's server, if one was started
	cpuLimit  string // how the CPU of the store's server is limited; empty: it is not
	startable string // the store whose server --start would start; empty: it did, or there is none
}

// advise adds to a refused connection how to start a server.
func (s *setup) advise(err error) error {
	if s.startable != "" && errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w; %s --start starts one for the run", err, s.startable)
	}
	return err
}

// setUp prepares a bench server of our own, and starts the store's server if asked to.
func (a *app) setUp(ctx context.Context, o runOptions) (setup, error) {
	own, servers, err := a.prepare(o)
	if err != nil || !servers.Any() {
		return own, err
	}
	started, err := servers.Start(ctx)
	if err != nil {
		return own, err
	}
	own.stop, own.cpuLimit = func() { started.Stop() }, started.CPULimit
	measured := own.servers.(*session.Started)
	measured.StoreServers = started
	measured.Store.SetURL(started.URL())
	return own, nil
}

// prepare checks all that can be checked before anything is started. servers are those of
// the store, if they are to be started.
func (a *app) prepare(o runOptions) (own setup, servers backend.Servers, err error) {
	own.stop = func() {}
	if o.fill < 0 {
		return own, servers, fmt.Errorf("--fill: %d, at least 0", o.fill)
	}
	target, err := a.target(o.store)
	if err != nil {
		return own, servers, err
	}
	if servers, err = o.start.Check(o.store, &target); err != nil {
		return own, servers, err
	}
	if own.cfg, err = a.sessionConfig(target.Driver); err != nil {
		return own, servers, err
	}
	program, err := a.benchServer(target.Driver)
	if !servers.Any() && !target.Embedded() {
		own.startable = target.Driver
	}
	own.cfg.Durability = o.start.Durability
	own.servers, own.flushers = &session.Started{Store: target, Program: program, Preload: o.fill}, a.sagaConfig().Commit.Flushers
	return own, servers, err
}

// benchServer returns how to start a bench server for a run.
func (a *app) benchServer(driver string) (session.Program, error) {
	exe, err := os.Executable()
	program := session.Program{
		Path:     exe,
		Args:     []string{"serve", driver, "--listen", "127.0.0.1:0"},
		Env:      a.serverEnvironment,
		Announce: servingPrefix,
	}
	if a.configFile != "" {
		program.Args = append(program.Args, "--config", a.configFile)
	}
	return program, err
}

// measureAndShow measures the servers once, and writes and prints the result.
func (a *app) measureAndShow(ctx context.Context, on setup) error {
	summary, err := a.measure(ctx, on)
	if err != nil {
		return err
	}
	return a.show(summary, summary.Validity, report.Document(result.Result{Dir: on.cfg.Dir, Run: &summary}), on.cfg.Dir)
}

// measure measures the servers once, shows the progress, and writes the result.
func (a *app) measure(ctx context.Context, on setup) (result.Summary, error) {
	cfg := on.cfg
	stop, err := a.serveMetrics(&cfg.Load)
	if err != nil {
		return result.Summary{}, err
	}
	defer stop()
	shown := progress.Follow(a.stderr, &cfg)
	summary, err := session.Run(ctx, cfg, on.servers)
	shown.EndBar()
	if err != nil {
		_ = os.Remove(resultsDir) // if it is empty: nothing was written
		return summary, on.advise(err)
	}
	return summary, report.WriteRun(cfg.Dir, summary)
}

// serverEnvironment returns the environment of a run's bench server. It selects the
// store: arguments could be read by anybody on the machine.
func (a *app) serverEnvironment(t open.Target) []string {
	env := slices.Clone(a.environ)
	set := func(key, value string) { env = append(env, config.Variable(key)+"="+value) }
	set("server.drain", "0s") // no load balancer has to notice
	for key, value := range t.Location() {
		set(key, value)
	}
	return env
}

// sessionConfig checks all that can be checked before anything is started.
func (a *app) sessionConfig(driver string) (session.Config, error) {
	load, err := a.loadConfig()
	if err != nil {
		return session.Config{}, err
	}
	if err := a.sagaConfig().Validate(); err != nil {
		return session.Config{}, err
	}
	cfg := session.Config{
		ID:       result.RunID(time.Now(), driver),
		Command:  a.command(),
		Dir:      a.out,
		Scenario: a.scenario(),
		Token:    a.options.Tokens().First(),
		Load:     load,
	}
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(resultsDir, cfg.ID)
	}
	if err := cfg.Load.Validate(); err != nil {
		return cfg, err
	}
	return cfg, cfg.Scenario.Validate()
}

// programWords are how the program is called where a command is shown.
const programWords = "go run bench/main.go"

// valueOf is the value of a flag, if argument i is that, with or without the flag
// itself before it.
func (a *app) valueOf(name string, i int) (flag, value string, ok bool) {
	flag = "--" + name + "="
	if value, ok = strings.CutPrefix(a.args[i], flag); ok {
		return flag, value, true
	}
	return "", a.args[i], i > 0 && a.args[i-1] == "--"+name
}

// command is what was typed, after the settings in the environment, without secrets.
func (a *app) command() string {
	words := append(a.environmentWords(), programWords)
	for i, arg := range a.args {
		if flag, setting, ok := a.valueOf(setFlag, i); ok {
			arg = flag + backend.RedactSetting(open.Redact(setting))
		} else if flag, targets, ok := a.valueOf(targetFlag, i); ok {
			urls := strings.Split(targets, ",")
			for k := range urls {
				urls[k] = open.Redact(urls[k])
			}
			arg = flag + strings.Join(urls, ",")
		} else {
			arg = open.Redact(arg)
		}
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

// environmentWords are the settings in the environment, as a shell takes them before a command.
// Of a secret only the URL of a server is shown, without its password.
func (a *app) environmentWords() (words []string) {
	o := defaults()
	settings := o.settings()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		for _, entry := range a.environ {
			value, found := strings.CutPrefix(entry, config.Variable(key)+"=")
			if !found {
				continue
			}
			if _, hidden := settings[key].(*secret.Text); hidden && strings.Contains(value, "://") {
				value = open.Redact(value)
			} else if hidden {
				value = "***"
			}
			words = append(words, config.Variable(key)+"="+quoted(value))
		}
	}
	return words
}

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " '\"$&;|<>*?()\\`#\t\n") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
