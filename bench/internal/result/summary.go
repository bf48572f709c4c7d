package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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
	return started.UTC().Format("20060102-150405") + "-" + store
}

// Store describes the store, as its engine reports it.
type Store struct {
	Driver     string            `json:"driver"`
	Version    string            `json:"version"`
	Settings   map[string]string `json:"settings"`   // by the engine's names
	Durability string            `json:"durability"` // D0 to D4; empty: unknown
}

// Embedded reports whether the store is a part of the app's process.
func (s Store) Embedded() bool { return s.Driver == "pebble" }

// Scenario is the saga that was run.
type Scenario struct {
	Steps    int     `json:"steps"`
	Branches string  `json:"branches"` // empty or http
	Payload  int     `json:"payload"`  // bytes per step
	Fail     float64 `json:"fail"`     // share of sagas that fail on request
}

// LateAfter is the delay from which on a request counts as sent late. Timers and schedulers
// cause a millisecond or two. Ten show that the sender, or its limit of requests in flight,
// did not keep up.
const LateAfter = 10 * time.Millisecond

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
	OfferedPerS  *float64         `json:"offered_per_s"`  // average; null in a closed loop
	AchievedPerS float64          `json:"achieved_per_s"` // acknowledged sagas
	Requests     int64            `json:"requests"`
	Errors       int64            `json:"errors"` // a saga that fails on request is none
	ErrorsByKind map[string]int64 `json:"errors_by_kind"`
	Late         *int64           `json:"late"`    // requests sent over 10 ms after they were due; null in a closed loop
	Dropped      *int64           `json:"dropped"` // requests never sent; null in a closed loop
}

// Validity says whether a result may be used.
type Validity struct {
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"` // "what: why, with its numbers"
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

// Verdict returns the line above an invalid result, empty for a valid one.
func (v Validity) Verdict() string {
	if v.Valid {
		return ""
	}
	return "NOT VALID: the warnings below say why; do not quote these numbers"
}

// Pairs writes the entries of m in the order of their keys, as "a=1, b=2".
func Pairs(m map[string]string, separator string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+separator+m[name])
	}
	return strings.Join(list, ", ")
}
