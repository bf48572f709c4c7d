package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"strings"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/deploy/lab/sqlnodes"
	"sagabench/store"
	"sagabench/store/open"
)

// Start is what a command or a variant says of the store's server to start.
type Start struct {
	Start      bool
	Set        []string // settings of the server, NAME=VALUE
	Durability string   // class that the server, or an embedded store, gets; empty: that of its settings

	Nodes    int // masters of a Redis Cluster; 1: one server without cluster
	Replicas int // of each master; ReplicasOfClass: those that the durability class needs

	Server lab.Config // of bench matrix: its binary, image and CPUs
}

// ReplicasOfClass is the number of replicas if nobody says one: 1 with class D4, else none.
const ReplicasOfClass = math.MinInt

// MaxNodes limits the masters of a cluster that is started on this machine, MaxReplicas
// the replicas of each.
const (
	MaxNodes    = 16
	MaxReplicas = 5
	// A majority of the masters has to agree that one of them failed.
	failoverNodes = 3
)

// Servers is the servers to start for a store: one, one with a replica, or the nodes of a
// Redis Cluster.
type Servers struct {
	driver          string
	node            lab.Config
	nodes, replicas int
}

// Check returns the servers to start for a store that was called by a name, and gives an
// embedded store its durability class. Call it before anything is started. The error names
// the flag.
func (s Start) Check(name string, t *open.Target) (Servers, error) {
	why := "--replicas"
	if s.Replicas == ReplicasOfClass {
		if s.Replicas = 0; s.Start && s.replicated() {
			s.Replicas, why = 1, "--durability D4"
		}
	}
	switch {
	case !s.Start && (s.Server.Binary+s.Server.Image != "" || s.Server.CPUs > 0):
		return Servers{}, errors.New("binary, image and cpus are for a server that is started, and this store has none")
	case !s.Start && !t.Embedded():
		return Servers{}, s.None()
	case !s.Start && len(s.Set) > 0:
		return Servers{}, errSetWithoutStart
	case !s.Start && s.clustered():
		return Servers{}, errNodesWithoutStart
	case !s.Start:
		_, err := s.setDurability(t)
		return Servers{}, err
	case t.Embedded():
		return Servers{}, fmt.Errorf("--start: %s has no server to start", t.Driver)
	case name != t.Driver:
		return Servers{}, fmt.Errorf("--start: it starts a server of its own: name %s without the address of another", t.Driver)
	}
	if err := s.checkNodes(t.Driver, why); err != nil {
		return Servers{}, err
	}
	settings, err := s.settings(t)
	if err != nil {
		return Servers{}, err
	}
	found := Servers{driver: t.Driver, node: s.Server, nodes: s.Nodes, replicas: s.Replicas}
	found.node.Settings = settings
	return found, nil
}

// None refuses what is for a server that is started, if there is none.
func (s Start) None() error {
	switch {
	case s.Start:
		return errors.New("--start and --target: servers that run already have a store; leave one of the two out")
	case len(s.Set) > 0:
		return errSetWithoutStart
	case s.clustered():
		return errNodesWithoutStart
	case s.Durability != "":
		return errors.New("--durability: it is for pebble, or for a server that --start starts; of yours the class is that of its settings")
	}
	return nil
}

var (
	errSetWithoutStart   = errors.New("--set: it is for a server that --start starts; yours keeps its settings")
	errNodesWithoutStart = errors.New("--nodes and --replicas are for servers that --start starts; for a Redis Cluster of yours, give the URL of any node")
)

func (s Start) clustered() bool {
	return s.Nodes != 1 || s.Replicas != 0 && s.Replicas != ReplicasOfClass
}

// replicated reports whether the durability class needs a replica.
func (s Start) replicated() bool { return s.Durability == store.D4.String() }

// checkNodes checks the numbers of servers. why is what asked for replicas.
func (s Start) checkNodes(driver, why string) error {
	switch {
	case s.Nodes < 1 || s.Nodes > MaxNodes:
		return fmt.Errorf("--nodes: %d, must be 1 to %d", s.Nodes, MaxNodes)
	case s.Replicas < 0 || s.Replicas > MaxReplicas:
		return fmt.Errorf("--replicas: %d, must be 0 to %d", s.Replicas, MaxReplicas)
	case s.Nodes > 1 && driver != open.Redis:
		return fmt.Errorf("--nodes is for a Redis Cluster: --start starts one %s, and with --replicas 1 also a replica", driver)
	case s.Nodes == 1 && s.Replicas > 1:
		return fmt.Errorf("--replicas: %d, must be 0 or 1 without a Redis Cluster", s.Replicas)
	case s.Replicas > 0 && s.Nodes > 1 && s.Nodes < failoverNodes:
		return fmt.Errorf("--nodes: %d, with %s must be 1, or %d to %d: a replica takes over only in a cluster of at least %[3]d masters", s.Nodes, why, failoverNodes, MaxNodes)
	case s.Replicas == 0 && s.replicated():
		return errors.New("--replicas: 0, must be at least 1 with --durability D4, which acknowledges a write only once a replica has it")
	}
	return nil
}

// settings returns those of each server.
func (s Start) settings(t *open.Target) (map[string]string, error) {
	settings, err := s.setDurability(t)
	if err != nil {
		return nil, err
	}
	ofClass := maps.Clone(settings)
	for _, text := range s.Set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !settingName.MatchString(name) {
			return nil, fmt.Errorf("--set: %q, want NAME=VALUE", RedactSetting(text))
		}
		if name, err = serverSetting(t.Driver, name); err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
		if _, set := ofClass[name]; set {
			return nil, fmt.Errorf("--set: %s: --durability %s sets it, leave one of the two out", name, s.Durability)
		}
		if _, twice := settings[name]; twice {
			return nil, fmt.Errorf("--set: %s is set twice", name)
		}
		settings[name] = value
	}
	return settings, nil
}

// setDurability returns the settings that give the server the class, if there is one. It
// gives an embedded store the class.
func (s Start) setDurability(t *open.Target) (settings map[string]string, err error) {
	if s.Durability == "" {
		return map[string]string{}, nil
	}
	class, ok := store.ParseDurability(s.Durability)
	if !ok {
		return nil, fmt.Errorf("--durability: %q, want D0 to D4", s.Durability)
	}
	if settings, err = SetDurability(t, class); err != nil {
		return nil, fmt.Errorf("--durability: %w", err)
	}
	return settings, nil
}

var settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// RedactSetting hides the value of NAME=VALUE if it is a secret.
func RedactSetting(text string) string {
	if name, _, ok := strings.Cut(text, "="); ok && open.SecretSetting(name) {
		return name + "=***"
	}
	return text
}

// Any reports whether there is a server to start.
func (s Servers) Any() bool { return s.driver != "" }

// Node is how each server is started.
func (s Servers) Node() lab.Config { return s.node }

// Replicated reports whether it is one server with a replica.
func (s Servers) Replicated() bool { return s.nodes == 1 && s.replicas > 0 }

// Started is servers that were started for a store: one, one with a replica, or the nodes of
// a Redis Cluster.
type Started struct {
	URLs     []string // of a cluster the masters first; without the replica of one server
	Replicas []string // URL of the replica of one server
	PIDs     []int    // of all
	Dir      string   // of the files of the first
	CPULimit string   // how the CPU of each is limited; empty: it is not
	Stop     func() error

	// Lose kills one server, and removes its files. Promote puts its replica in its place, and
	// returns that one's URL. They are nil without a replica.
	Lose    func() error
	Promote func(context.Context) (url string, err error)
}

// replicated is a primary with a replica.
type replicated interface {
	Nodes() []*lab.Server
	Promote(context.Context) error
	Stop() error
}

// Start starts the servers. A cluster serves all slots then, and a replica has the data of
// its primary.
func (s Servers) Start(ctx context.Context) (Started, error) {
	switch {
	case s.Replicated():
		return s.startReplicated(ctx)
	case s.nodes == 1:
		server, err := backends[s.driver].Start(ctx, s.node)
		if err != nil {
			return Started{}, err
		}
		return started(server.Stop, server), nil
	}
	cluster, err := redisnodes.StartCluster(ctx, redisnodes.ClusterConfig{Masters: s.nodes, Replicas: s.replicas, Node: s.node})
	if err != nil {
		return Started{}, err
	}
	return started(cluster.Stop, cluster.Nodes()...), nil
}

func (s Servers) startReplicated(ctx context.Context) (Started, error) {
	var pair replicated
	var err error
	if s.driver == open.Redis {
		pair, err = redisnodes.StartReplicated(ctx, s.node)
	} else {
		pair, err = sqlnodes.Start(ctx, backends[s.driver].Kind, s.node)
	}
	if err != nil {
		return Started{}, err
	}
	found := started(pair.Stop, pair.Nodes()...)
	found.URLs, found.Replicas = found.URLs[:1], found.URLs[1:]
	found.Lose = pair.Nodes()[0].Destroy
	found.Promote = func(ctx context.Context) (string, error) { return found.Replicas[0], pair.Promote(ctx) }
	return found, nil
}

func started(stop func() error, servers ...*lab.Server) Started {
	s := Started{Dir: servers[0].Dir(), CPULimit: servers[0].CPULimit(), Stop: stop}
	for _, server := range servers {
		s.URLs, s.PIDs = append(s.URLs, server.URL()), append(s.PIDs, server.PID())
	}
	return s
}

// URL returns one URL for all servers: that of the first, with the addresses of the others
// in case it is lost.
func (s Started) URL() string {
	u, err := url.Parse(s.URLs[0])
	if err != nil || len(s.URLs) == 1 {
		return s.URLs[0]
	}
	query := u.Query()
	for _, other := range s.URLs[1:] {
		if o, err := url.Parse(other); err == nil {
			query.Add("addr", o.Host)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}
