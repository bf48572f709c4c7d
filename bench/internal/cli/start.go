package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"sagabench/bench/internal/backend"
)

const (
	setFlag        = "set"
	durabilityFlag = "durability"
)

// startFlags binds the flags of the store's servers that are started for a command.
func startFlags(f *pflag.FlagSet, s *backend.Start) {
	f.BoolVar(&s.Start, "start", false, "start the store's server for this run, from the binary on PATH")
	f.StringArrayVar(&s.Set, setFlag, nil, "NAME=VALUE: a setting of the server that --start starts, by its own names; once for each")
	nodesFlag(f, &s.Nodes)
	const replicas = "replicas"
	f.IntVar(&s.Replicas, replicas, backend.ReplicasOfClass, fmt.Sprintf("with --start: of the server, 0 or 1; of each master of a Redis Cluster of at least 3, 0 to %d (default 0, with D4 1)", backend.MaxReplicas))
	f.Lookup(replicas).DefValue = "0" // which the help does not show
	durabilityFlagOf(f, &s.Durability)
}

func nodesFlag(f *pflag.FlagSet, nodes *int) {
	f.IntVar(nodes, "nodes", 1, fmt.Sprintf("of redis with --start: masters of a Redis Cluster, 2 to %d; 1: a server without cluster", backend.MaxNodes))
}

func durabilityFlagOf(f *pflag.FlagSet, class *string) {
	f.StringVar(class, durabilityFlag, "", "D0 to D4: give pebble, or the server that --start starts, this durability class; with D4 it gets a replica")
}
