package validity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Evidence is what Judge needs besides the summary. A nil pointer is unknown, and counts
// neither for nor against the result.
type Evidence struct {
	Incomplete string        // why the run ended early; empty: it is complete
	Planned    time.Duration // of the measured part; 0: unknown

	Intervals []result.Interval // of the measured part
	SLO       result.SLO        // that is looked for; empty: none
	Clamped   int64             // latencies beyond what the histogram holds

	result.Resources               // over the measured part
	HostCores        int           // of the load generator's machine; 0: unknown
	CPUs             CPUs          // of its machine
	GCPause          time.Duration // of the load generator, all pauses together

	StoreSagas *int64        // sagas of the run by the store's count, warm-up included
	Leftovers  *int64        // sagas that were in the store before the run
	After      *result.Store // the store's settings after the run
	Findings   []string      // violations that the audit found, in words
	Failures   []string      // what could not be measured, and why
}

// The thresholds of Judge.
const (
	lateShare        = 0.10  // of the latency limit, or without one of the measured p99: a higher p99 lateness is a warning
	latenessMost     = 0.20  // of the measured p99, without a limit: a higher p99 lateness makes the run invalid
	lateLeastMS      = 2.0   // timers may be as late
	delayedShare     = 0.001 // of the requests, delayed by the limit of requests in flight
	generatorFull    = 0.80  // of the cores it may use: above it the generator may be the limit
	fullMachineShare = 0.80  // of all cores, used by load, app and store: above it the machine is full
	stealShare       = 0.01  // of all cores
	throttledShare   = 0.01  // of the periods of a CPU quota
	moreThanShare    = 1.10  // cores of the processes over those of the machine: two ways to measure CPU differ by less
	othersShare      = 0.15  // of all cores, used by processes that are no part of the run
	pauseShare       = 0.01  // of the time
	driftShare       = 0.10  // between the rates of the first and the last third
	slowerShare      = 0.25  // between their latencies
	slowerLeastMS    = 0.2   // smaller differences between latencies are no warning
	driftIntervals   = 6     // fewer show no drift
	debtShare        = 0.10  // of the bytes written, put off until after the measurement
	omissionShare    = 0.10  // between the p99 from the due time and that from the send
	omissionLeastMS  = 2.0   // smaller differences between them are no warning
)

// Judge decides whether a run is valid, and what is to be known before it is used.
func Judge(s result.Summary, e Evidence) result.Validity {
	j := newJudgement(s, e)
	j.complete()
	j.outcomes()
	j.errors()
	j.counted()
	j.settings()
	j.overload()
	j.generator()
	j.delayed()
	j.limit()
	j.samples()
	j.background()
	j.omission()
	j.drift()
	j.costs()
	j.surroundings()
	return j.Validity
}

type judgement struct {
	result.Validity // until now
	s               result.Summary
	e               Evidence
}

func newJudgement(s result.Summary, e Evidence) judgement {
	return judgement{Validity: result.Validity{Valid: true}, s: s, e: e}
}

// refuse makes the result invalid. The text reads on from "because".
func (j *judgement) refuse(format string, args ...any) {
	j.Valid, j.Because = false, append(j.Because, fmt.Sprintf(format, args...))
}

// warn adds a finding that the reader must act on, or that limits what the result may be
// used for.
func (j *judgement) warn(format string, args ...any) {
	j.Warnings = append(j.Warnings, fmt.Sprintf(format, args...))
}

// note adds a finding that is worth knowing.
func (j *judgement) note(format string, args ...any) {
	j.Notes = append(j.Notes, fmt.Sprintf(format, args...))
}

func (j *judgement) complete() {
	if j.e.Incomplete != "" {
		text := "it is incomplete: " + j.e.Incomplete
		if j.e.Planned > 0 {
			text += fmt.Sprintf("; %s s of %s s were measured", format.Number(j.s.Run.DurationS), format.Number(j.e.Planned.Seconds()))
		}
		j.refuse("%s", text)
	}
	for _, failure := range j.e.Failures {
		j.warn("not measured: %s", failure)
	}
}

func (j *judgement) outcomes() {
	c := j.s.Check
	for _, v := range c.Violations() {
		text := fmt.Sprintf("the audit found %s of %s acknowledged sagas %s", format.Count(*v.N), format.Count(c.Acknowledged), v.Name)
		if store := j.s.Run.Store; v.N == c.Lost && store.Masters() > 0 && store.Durability != "D4" {
			text += "; a replica that takes over lacks what had not reached it, unless redis.replicas is 1 or more"
		}
		j.refuse("%s", text)
	}
	for _, finding := range j.e.Findings {
		j.refuse("the audit found: %s", finding)
	}
	if c.LostWrites > 0 {
		j.warn("lost writes: coordinators found %s that the store lacked what it had acknowledged: it crashed, or failed over to a replica that was behind",
			format.Plural(c.LostWrites, "time"))
	}
	if c.Lost == nil && c.Acknowledged > 0 {
		j.warn("not audited: the store was not searched for the %s that were acknowledged", format.Plural(c.Acknowledged, "saga"))
	}
	if c.Expired > 0 {
		j.warn("not audited: %s of %s acknowledged sagas are older than the retention: raise store.retention above the length of the run",
			format.Count(c.Expired), format.Count(c.Acknowledged))
	}
	if c.Unfinished != nil && *c.Unfinished > 0 {
		j.warn("unfinished: %s had not ended when the store was audited", format.Plural(*c.Unfinished, "saga"))
	}
}

func (j *judgement) errors() {
	l := j.s.Load
	if l.Requests == 0 {
		j.refuse("no request was sent in the measured part")
		return
	}
	if l.Errors == 0 {
		return
	}
	share := float64(l.Errors) / float64(l.Requests)
	text := fmt.Sprintf("%s of %s requests failed (%s; %s are allowed): %s",
		format.Count(l.Errors), format.Count(l.Requests), format.Percent(share), format.Percent(result.DefaultErrorBudget), strings.Join(l.ErrorKinds(), ", "))
	if open := limit.ServerConnections(j.e.Resources, l.Errors); open != nil {
		text += fmt.Sprintf("; %s of the connections that the store's server allows are open, and it refuses more", format.Percent(*open))
	}
	if share > result.DefaultErrorBudget {
		j.refuse("%s", text)
	} else {
		j.warn("errors: %s", text)
	}
}

// counted compares the answers of clients with the store's own count.
func (j *judgement) counted() {
	if n := j.e.Leftovers; n != nil && *n > 0 {
		j.warn("leftovers: the store held %s before the run", format.Plural(*n, "saga"))
	}
	if j.e.StoreSagas == nil {
		return
	}
	stored, answered := *j.e.StoreSagas, j.s.Check.Acknowledged
	switch {
	case stored+j.s.Check.Expired < answered:
		j.refuse("clients got answers for %s, the store counts %s", format.Plural(answered, "saga"), format.Count(stored))
	case !j.s.Check.Explains(stored, j.s.Load.Errors):
		j.warn(result.CountsDiffer+"the store counts %s, clients got answers for %s and %s: another client uses the store, or requests of the warm-up failed",
			format.Plural(stored, "saga"), format.Count(answered), format.Plural(j.s.Load.Errors, "error"))
	}
}

func (j *judgement) settings() {
	after := j.e.After
	if after == nil {
		return
	}
	before := j.s.Run.Store
	if before.Durability != after.Durability {
		j.refuse("the durability changed during the run: %s, then %s", before.Durability, after.Durability)
	}
	if before.Version != after.Version {
		j.refuse("the version of the store changed during the run: %s, then %s", before.Version, after.Version)
	}
	names := maps.Clone(before.Settings)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, after.Settings)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was, is := before.Settings[name], after.Settings[name]; was != is {
			j.refuse("a setting of the store changed during the run: %s %q, then %q", name, was, is)
		}
	}
}

func (j *judgement) overload() {
	l := j.s.Load
	if !l.Overloaded() {
		return
	}
	j.warn("overloaded: %s/s achieved of %s/s offered (%s); the latencies depend on the length of the run: do not quote them",
		format.Number(l.AchievedPerS), format.Number(*l.OfferedPerS), format.Percent(l.AchievedPerS / *l.OfferedPerS))
}
