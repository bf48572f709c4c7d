package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/internal/format"
)

// Summary is the result of one run.
type Summary struct {
	Envelope
	Measurement
	Timeline []Sample `json:"timeline"`
}

// Measurement is one load on a store: rate, latency, cost and resources.
type Measurement struct {
	Load        Load      `json:"load"`
	LatencyMS   Latency   `json:"latency_ms"` // milliseconds from when a request was due
	ServiceMS   Latency   `json:"service_ms"` // milliseconds from when it was sent
	CostPerSaga Cost      `json:"cost_per_saga"`
	Resources   Resources `json:"resources"`
}

// Run identifies a run.
type Run struct {
	ID         string    `json:"id"` // start in UTC, and store
	Started    time.Time `json:"started"`
	DurationS  float64   `json:"duration_s"` // seconds of the measured part, to its last answer
	Command    string    `json:"command"`    // command that reproduces the run
	Store      Store     `json:"store"`
	Scenario   Scenario  `json:"scenario"`
	Topology   string    `json:"topology"`    // which processes ran on which machines
	Targets    []string  `json:"targets"`     // URLs of servers that ran already; empty: one was started for the run, or unknown
	AppHosts   int       `json:"app_hosts"`   // number of app servers; 0: unknown
	SharedHost bool      `json:"shared_host"` // whether load, app or store shared a machine
	Commit     *string   `json:"commit"`      // of this program; null: unknown
}

// RunID names a run after its start, in UTC, and its store.
func RunID(started time.Time, store string) string {
	return started.UTC().Format(idTime) + "-" + store
}

const idTime = "20060102-150405"

// Spanning returns r with the start and the duration of all the runs that it is made of.
func (r Run) Spanning(of []Envelope) Run {
	var ended time.Time
	for _, e := range of {
		if end := e.Run.Started.Add(time.Duration(e.Run.DurationS * float64(time.Second))); end.After(ended) {
			ended = end
		}
		if e.Run.Started.Before(r.Started) && !e.Run.Started.IsZero() {
			r.Started = e.Run.Started
		}
	}
	r.ID = r.Started.UTC().Format(idTime) + r.ID[len(idTime):]
	r.DurationS = max(0, ended.Sub(r.Started).Seconds())
	return r
}

// Store describes the store, as its engine reports it.
type Store struct {
	Driver     string            `json:"driver"`
	Version    string            `json:"version"`
	Settings   map[string]string `json:"settings"`   // by the engine's names
	Durability string            `json:"durability"` // D0 to D4; empty: unknown

	// RetentionS is how long the app keeps a finished saga in it, in seconds. It is null if
	// the app was not started for the run: then its own configuration says.
	RetentionS *float64 `json:"retention_s"`
}

// Embedded reports whether the store is a part of the app's process.
func (s Store) Embedded() bool { return s.Driver == "pebble" }

// Masters returns the number of masters of a Redis Cluster; 0: the store is none.
func (s Store) Masters() int {
	n, _ := strconv.Atoi(s.Settings["masters"])
	return max(0, n)
}

// KeyReplica is the key in Store.Settings of how the server's replica was started. It is absent
// without one.
const KeyReplica = "replica"

// KeyReplicas is the key in Store.Settings of the number of replicas of a Redis Cluster. It is
// absent without any.
const KeyReplicas = "replicas"

// CostNote returns ", replica included" or ", replicas included" if they are in the costs of the
// store.
func (s Store) CostNote() string {
	switch {
	case s.Replicated():
		return ", replica included"
	case s.Settings[KeyReplicas] != "":
		return ", replicas included"
	}
	return ""
}

// Replicated reports whether the costs of the store are those of its server and a replica.
func (s Store) Replicated() bool { return s.Settings[KeyReplica] != "" }

// Nodes says which servers the store is, after its name: " with 3 masters", " with a replica". It is
// empty for one server.
func (s Store) Nodes() string {
	switch {
	case s.Masters() > 0:
		return " with " + format.Plural(s.Masters(), "master")
	case s.Replicated():
		return " with a replica"
	}
	return ""
}

// Scenario is the saga that was run.
type Scenario struct {
	Steps    int     `json:"steps"`
	Branches string  `json:"branches"` // empty or http
	Payload  int     `json:"payload"`  // bytes per step
	Fail     float64 `json:"fail"`     // share of sagas that fail on request
}

// Load modes.
const (
	Open   = "open"   // requests are due at a fixed rate, whatever the answers do
	Closed = "closed" // a fixed number of requests is kept in flight
)

// Load describes the requests of the measured part.
type Load struct {
	Mode         string           `json:"mode"`
	InFlight     int              `json:"in_flight"`      // requests in flight: constant in a closed loop, the limit in an open loop
	Profile      string           `json:"profile"`        // rate of each load host, as 500/s, 100/s,200/s or 100/s..2000/s; empty in a closed loop
	Arrival      string           `json:"arrival"`        // constant or poisson; empty in a closed loop
	Seed         *uint64          `json:"seed"`           // of random arrivals; null: they are not random, or several load hosts made them
	OfferedPerS  *float64         `json:"offered_per_s"`  // average; null in a closed loop
	AchievedPerS float64          `json:"achieved_per_s"` // acknowledged sagas
	Requests     int64            `json:"requests"`
	Errors       int64            `json:"errors"` // a saga that fails on request is none
	ErrorsByKind map[string]int64 `json:"errors_by_kind"`
	LatenessMS   *Latency         `json:"lateness_ms"` // how long after its due time a request was sent; of the requests that were not delayed; null in a closed loop
	Delayed      *int64           `json:"delayed"`     // requests that waited because in_flight was reached; null in a closed loop
	Dropped      *int64           `json:"dropped"`     // requests never sent; null in a closed loop

	// Requests that were due and not answered yet, when the measured part began and when
	// sending ended, the dropped ones included: a growing backlog if there are more at the
	// end. Null in a closed loop.
	UnansweredStart *int64 `json:"unanswered_start"`
	UnansweredEnd   *int64 `json:"unanswered_end"`
}

// Environment is the machine of the load generator.
type Environment struct {
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`  // logical cores that this process may use
	Memory   int64             `json:"memory"` // bytes
	Kernel   string            `json:"kernel"`
	Go       string            `json:"go"`
	Governor *string           `json:"governor"` // CPU frequency governor; null: unknown
	Versions map[string]string `json:"versions"` // of libraries and tools

	// HostID is the id of the kernel's boot and, after a slash, that of the network namespace.
	// Results with the same boot are of one machine. Empty: unknown.
	HostID string `json:"host_id"`

	CPUQuota    *float64 `json:"cpu_quota"`    // cores that the cgroups of the load generator allow; null: no quota, or unknown
	MemoryLimit *int64   `json:"memory_limit"` // bytes that they allow; null: no limit, or unknown
	CPUs        CPUs     `json:"cpus"`

	StoreDisk *StoreDisk `json:"store_disk"` // null: it is not known where the store keeps its files
}

// CPUs lists the logical CPUs that the processes on the load generator's machine may use, as
// "0-3,8"; null: unknown, or on another machine.
type CPUs struct {
	Load  *string `json:"load"`
	App   *string `json:"app"`
	Store *string `json:"store"`
}

// StoreDisk is what the store's files are on.
type StoreDisk struct {
	FileSystem string   `json:"file_system"`  // empty: unknown
	Mount      string   `json:"mount"`        // directory that it is mounted on; empty: unknown
	Device     string   `json:"device"`       // by the kernel's name, as vda1; empty: unknown, or none
	Rotational *bool    `json:"rotational"`   // as the kernel says, which of a virtual disk may not know; null: unknown
	FsyncP50MS *float64 `json:"fsync_p50_ms"` // milliseconds to append 4 KiB and fsync, before the load; null: unknown
	FsyncP99MS *float64 `json:"fsync_p99_ms"`
	FsyncMaxMS *float64 `json:"fsync_max_ms"`
}

// The separators of profiles that change the rate.
const (
	steps = ","
	ramps = ".."
)

// Changes reports whether the profile changes the offered rate.
func (l Load) Changes() bool {
	return strings.Contains(l.Profile, steps) || strings.Contains(l.Profile, ramps)
}

// overloadedBelow is the share of the offered rate below which a run is overloaded.
const overloadedBelow = 0.99

// Overloaded reports whether the system did not follow the offered rate. Latencies then grow
// with the length of the run. Failed requests count as followed.
func (l Load) Overloaded() bool {
	if l.OfferedPerS == nil || l.Requests == 0 {
		return false
	}
	answered := 1 - float64(l.Errors)/float64(l.Requests)
	return l.AchievedPerS < overloadedBelow**l.OfferedPerS*answered
}

// String describes the saga.
func (c Scenario) String() string {
	saga := fmt.Sprintf("%s, %s branches", format.Plural(int64(c.Steps), "step"), c.Branches)
	if c.Payload > 0 {
		saga += fmt.Sprintf(", %s of payload a step", format.Plural(int64(c.Payload), "byte"))
	}
	if c.Fail > 0 {
		saga += fmt.Sprintf(", %.4g%% of them asked to fail", 100*c.Fail)
	}
	return saga
}

// Machine describes the machine: its CPU, cores, memory and frequency governor.
func (e Environment) Machine() string {
	machine := fmt.Sprintf("%s, %s, %s", e.CPU, format.Plural(int64(e.Cores), "core"), format.Bytes(e.Memory))
	if e.Governor != nil {
		machine += ", governor " + *e.Governor
	}
	return machine
}

// String describes the disk: its file system and device, and how long it takes to append
// 4 KiB and to fsync.
func (d StoreDisk) String() string {
	text := cmp.Or(d.FileSystem, "an unknown file system")
	if d.Device != "" {
		text += " on " + d.Device
		if d.Rotational != nil && *d.Rotational {
			text += " (rotational)"
		}
	}
	if d.Mount != "" {
		text += ", mounted on " + d.Mount
	}
	if d.FsyncP50MS == nil || d.FsyncP99MS == nil || d.FsyncMaxMS == nil {
		return text
	}
	return fmt.Sprintf("%s, 4 KiB fsynced in %s ms, p99 %s ms, at most %s ms", text,
		format.Number(*d.FsyncP50MS), format.Number(*d.FsyncP99MS), format.Number(*d.FsyncMaxMS))
}

// Limits describes what the cgroups of the load generator allow; empty: they limit nothing.
func (e Environment) Limits() string {
	var limits []string
	if e.CPUQuota != nil {
		limits = append(limits, "CPU quota "+format.Short(*e.CPUQuota)+" cores")
	}
	if e.MemoryLimit != nil {
		limits = append(limits, "memory "+format.Bytes(*e.MemoryLimit))
	}
	return strings.Join(limits, ", ")
}

// String lists the CPUs by process: "load 0-1, app 0-1". It is empty if none are known.
func (c CPUs) String() string {
	var known []string
	for _, p := range []struct {
		name string
		cpus *string
	}{{"load", c.Load}, {"app", c.App}, {"store", c.Store}} {
		if p.cpus != nil {
			known = append(known, p.name+" "+*p.cpus)
		}
	}
	return strings.Join(known, ", ")
}

// ErrorKinds lists the errors with their counts, the most frequent first.
func (l Load) ErrorKinds() []string {
	kinds := slices.SortedFunc(maps.Keys(l.ErrorsByKind), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.ErrorsByKind[b], l.ErrorsByKind[a]), cmp.Compare(a, b))
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s × %s", format.Count(l.ErrorsByKind[kind]), kind)
	}
	return kinds
}

// Pairs writes the entries of m in the order of their keys, as "a=1, b=2".
func Pairs(m map[string]string, separator string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+separator+m[name])
	}
	return strings.Join(list, ", ")
}
