package session

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
	"sagabench/bench/internal/server"
	"sagabench/bench/internal/validity"
	"sagabench/internal/format"
	"sagabench/store/open"
)

// moreEnded is the share by which the servers' count of sagas may differ from vegeta's.
const moreEnded = 0.01

// ReadResults reads results: directories, and files of vegeta's results.
func ReadResults(paths []string) (results []result.Result, err error) {
	for _, path := range paths {
		read := result.ReadResult
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			read = ReadVegeta
		}
		r, err := read(path)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// ReadVegeta returns the result of an attack that vegeta made by itself, from its file, as
// RESULTS.bin. Beside it may be the servers' /metrics from before and after the attack, as
// RESULTS.before.prom and RESULTS.after.prom; those of several servers have names, as in
// RESULTS.before.app1.prom.
func ReadVegeta(path string) (result.Result, error) {
	a, err := load.ReadVegeta(path)
	if err != nil {
		return result.Result{}, err
	}
	s := result.Summary{
		Envelope: result.Envelope{
			Schema: result.Schema, Kind: result.KindRun,
			Run: result.Run{
				ID: result.RunID(a.Began, "vegeta"), Started: a.Began, DurationS: a.Elapsed.Seconds(),
				Command: "vegeta attack, with its results in " + path, Scenario: result.Scenario(server.DefaultScenario()),
			},
			Check: result.Check{Acknowledged: a.Sagas()},
		},
		Measurement: result.Measurement{Load: a.Load(), LatencyMS: result.LatencyOf(a.Latency), ServiceMS: result.LatencyOf(a.Service)},
	}
	s.Load.LatenessMS, s.Load.Delayed, s.Load.Dropped = nil, nil, nil // vegeta does not say when a request was due
	describeTargets(&s, a.URLs)
	evidence := validity.Evidence{Planned: a.Elapsed, Intervals: a.Intervals, Clamped: a.Clamped}
	own, err := addMetrics(&s, &evidence, path, a)
	if err != nil {
		return result.Result{}, err
	}
	v := validity.Judge(s, evidence)
	v.Warnings = append(v.Warnings, own...)
	v.Warnings = append(v.Warnings, "sent late: vegeta stamps a request when it is sent, so a wait for one of its -max-workers is in no latency")
	if s.Load.Mode == result.Closed {
		v.Warnings = append(v.Warnings, fmt.Sprintf("closed loop: nearly always %s were in flight; the rate is that of the servers, and no rate was offered",
			format.Plural(s.Load.InFlight, "request")))
	}
	if a.NoBodies > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%s without a body: 200 counts as a saga that succeeded, 409 as one that was rolled back", format.Plural(a.NoBodies, "answer")))
	}
	v.Notes = append(v.Notes, "not known from vegeta's results: the store, the CPU of store and vegeta, and the machines; cores are those that an app server may use")
	s.Validity = v
	return result.Result{Dir: path, Run: &s, Recording: a.Recording}, nil
}

// describeTargets takes servers and scenario from the URLs that were requested.
func describeTargets(s *result.Summary, urls []string) {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		if scenario, err := server.ParseScenario(u.RawQuery); err == nil && strings.HasSuffix(u.Path, "/bench/saga") {
			s.Run.Scenario = result.Scenario(scenario)
		}
		u.Path, u.RawQuery = "", ""
		if at := open.Redact(u.String()); !slices.Contains(s.Run.Targets, at) {
			s.Run.Targets = append(s.Run.Targets, at)
			s.Run.SharedHost = s.Run.SharedHost || local(at)
		}
	}
	s.Run.AppHosts = len(s.Run.Targets)
	s.Run.Topology = fmt.Sprintf("vegeta, %s that ran before", format.Plural(s.Run.AppHosts, "server"))
}

// addMetrics adds what the app servers' metrics say, if they are there. It returns warnings.
func addMetrics(s *result.Summary, e *validity.Evidence, path string, a load.VegetaResults) (warnings []string, err error) {
	name := strings.TrimSuffix(path, filepath.Ext(path))
	before, after, err := metricsFiles(name)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return []string{fmt.Sprintf("no costs: save /metrics of the servers before and after the attack, as %s.before.prom and %[1]s.after.prom", name)}, nil
	}
	if hosts := s.Run.AppHosts; len(before) != hosts {
		warnings = append(warnings, fmt.Sprintf("metrics of %s, requests to %d: the costs are those of the former", format.Plural(len(before), "server"), hosts))
	}
	u, ended, err := sample.FromFiles(before, after, cmp.Or(a.Elapsed, time.Nanosecond))
	if err != nil {
		return nil, err
	}
	sagas := a.Sagas()
	if ended != nil {
		if got := float64(sagas); *ended < got*(1-moreEnded) || *ended > got*(1+moreEnded) {
			warnings = append(warnings, fmt.Sprintf("counts differ: by their metrics the servers ended %s, vegeta got answers for %s; costs are divided by the former",
				format.Plural(int64(*ended), "saga"), format.Count(sagas)))
		}
		sagas = int64(*ended)
	}
	if cores := u.Resources.AppCoresUsable; cores != nil { // a plan takes machines to be alike
		s.Environment.Cores = int(*cores) / len(before)
	}
	s.CostPerSaga, s.Resources, e.Resources = u.PerSaga(sagas), u.Resources, u.Resources
	return warnings, nil
}

// metricsFiles returns the files before and after the attack, in the same order of servers.
func metricsFiles(name string) (before, after []string, err error) {
	for _, pattern := range []string{".before.prom", ".before.*.prom"} {
		found, err := filepath.Glob(globEscape(name) + pattern)
		if err != nil {
			return nil, nil, err
		}
		before = append(before, found...)
	}
	for _, file := range before {
		after = append(after, name+".after"+strings.TrimPrefix(file, name+".before"))
	}
	return before, after, nil
}

// globEscape makes a path match only itself.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
