// Package cli is the bench program's command line: it binds flags and settings to
// the packages that do the work, and prints what they return. Results go to
// stdout, all else to stderr.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/process"
	"sagabench/internal/format"
)

// Exit codes.
const (
	exitOK      = 0
	exitError   = 1 // no result was written
	exitInvalid = 2 // a result was written, and is not valid
	exitGate    = 3 // a result was written, and a gate is broken
	exitUnclear = 4 // a result was written, and a gate cannot tell; --gate-unclear changes it
)

// ended is the exit code of a command whose report has said the reason.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// errInvalid ends a command whose result is not valid.
const errInvalid = ended(exitInvalid)

// Main runs the program and returns its exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	logging.Disable() // the Redis client's own log: its errors reach us as such
	if os.Getenv("GOGC") == "" {
		// Little of what is allocated lives longer than a saga: collecting it
		// less often costs some 40 MB and saves a tenth of the CPU.
		debug.SetGCPercent(1000)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := process.EndWithGoRun(ctx)
	defer cancel()
	// The first Ctrl-C ends a command in order; a second one ends the program. timeout(1)
	// signals a program and its group, so at first another signal is the same one.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })

	a := &app{args: args, environ: os.Environ(), stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	var code ended
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(stderr, "bench:", format.Printable(strings.Join(strings.Fields(err.Error()), " ")))
		return exitError
	}
}

// sameSignal is how long after a signal another one has the same cause.
const sameSignal = time.Second

// app is what the commands share.
type app struct {
	args           []string
	environ        []string
	stdout, stderr io.Writer

	configFile string
	out        string
	options    options // defaults, file, environment and flags, once a command runs
	json       bool
	verbose    bool // print the whole report

	pebbleSyncLog string // of bench serve: see loss.SyncLogFlag
}

func (a *app) root() *cobra.Command {
	a.options = defaults()
	root := &cobra.Command{
		Use:   "bench [STORE]",
		Short: "What distributed transactions cost on a storage backend, and whether each came out right",
		Long: `bench runs sagas over a store, measures what they cost, and checks that none was lost.

Without arguments it is bench run pebble: the embedded store, no server needed.
bench STORE is bench serve STORE. A store is pebble, pebble:DIR, one of redis,
mysql (or MariaDB) and postgres, as configured, or the URL of a server:

  redis://[user:password@]host:port[/db]             rediss:// for TLS; any node of a Redis Cluster
  mysql://user[:password]@host:port/                 ?tls=true
  postgres://user[:password]@host:port/database      ?sslmode=verify-full

Exit codes: 0 success; 1 an error, or a variant of a matrix that could not run; 2 the
result is not valid; 3 a gate is broken; 4 a gate cannot tell. go run exits with 1 for
each code above 0: build the program for scripts (make build).`,
		Example: `  bench                                   the main job, on the embedded store
  bench run redis --start --duration 30s  the same on a Redis started for it
  bench redis                             a bench server, and how to drive it
  bench coordinator redis                 the coordinator alone, for dtm's clients`,
		Args:              cobra.MaximumNArgs(1),
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.serve(cmd.Context(), args[0], true)
			}
			return a.run(cmd.Context(), runOptions{store: defaultStore, start: backend.Start{Nodes: 1}})
		},
	}
	a.configFlag(root)
	root.PersistentFlags().BoolVar(&a.verbose, "verbose", false, "print the whole report, as report.html has it")
	a.loadFlags(root)
	a.scenarioFlags(root)
	a.serverFlags(root)
	root.AddCommand(a.serveCommand(), a.coordinatorCommand(), a.runCommand(), a.loadCommand(), a.luaCommand(), a.capacityCommand(), a.compareCommand(), a.matrixCommand(),
		a.planCommand(), a.reportCommand(), a.checkCommand(), a.versionCommand())
	root.Version = version()
	return root
}

// configFlag binds the flag that all commands have.
func (a *app) configFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&a.configFile, "config", "", "file of settings; conf.sample.yml lists them")
}
