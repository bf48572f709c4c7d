package load

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

// VegetaResults is what a file of vegeta's results holds.
type VegetaResults struct {
	Result
	URLs      []string // that were requested, each once
	Recording result.Recording
	NoBodies  int64 // answers without a body, whose outcome is that of the HTTP status
}

// heldFull is the share of the highest number in flight that a closed loop keeps in flight.
const heldFull = 0.8

// answered is one of vegeta's results.
type answered struct {
	at      time.Time
	latency time.Duration
	outcome store.Status
	kind    string // of the error; empty: none
}

func (r answered) end() time.Time { return r.at.Add(r.latency) }

// longestAttack bounds the memory that a file with a wrong timestamp takes.
const longestAttack = 7 * 24 * time.Hour

// ReadVegeta reads a file that vegeta attack wrote, in any of vegeta's formats. vegeta stamps
// requests when they are sent, so the latency is from the send. The offered rate is the mean
// rate of sends. If nearly as many requests as ever were always in flight, the loop was closed:
// -rate=0, or a rate that -max-workers did not let through.
func ReadVegeta(path string) (VegetaResults, error) {
	var a VegetaResults
	all, err := a.read(path)
	if err != nil {
		return a, err
	}
	if len(all) < 2 {
		return a, fmt.Errorf("%s: %d of vegeta's results, want at least 2", path, len(all))
	}
	slices.SortFunc(all, func(x, y answered) int { return x.at.Compare(y.at) })
	began, stopped := all[0].at, all[len(all)-1].at.Sub(all[0].at)
	slices.SortFunc(all, func(x, y answered) int { return x.end().Compare(y.end()) })
	if span := all[len(all)-1].end().Sub(began); span > longestAttack {
		return a, fmt.Errorf("%s: from the first request to the last answer it is %v, want at most %v", path, span, longestAttack)
	}

	m := newRecorder(Config{}, began, nil)
	m.begin()
	var acknowledged []time.Duration
	for _, r := range all {
		for r.end().Sub(m.from) >= intervalLength {
			a.endInterval(m, m.from.Add(intervalLength))
		}
		m.add(&vegeta.Result{Timestamp: r.at, Latency: r.latency}, r.at.Sub(began), stopped, r.outcome, r.kind)
		if r.kind == "" {
			acknowledged = append(acknowledged, r.end().Sub(began))
		}
	}
	a.endInterval(m, m.last.Add(time.Nanosecond)) // no interval is empty
	a.Result = m.res
	a.Elapsed = m.last.Sub(began)
	a.Recording.Latency, a.Recording.Service = a.Latency, a.Service

	mean, highest := inFlight(all, a.Elapsed)
	a.inFlight = highest
	gap := stopped / time.Duration(len(all)-1)
	if mean < heldFull*float64(highest) && gap > 0 {
		a.mode = result.Open
		offered := perSecond(1, gap)
		a.offered = &offered
	}
	if n := len(acknowledged); n > 0 {
		first99 := int(math.Ceil(0.99 * float64(n)))
		a.AchievedPerS = perSecond(float64(first99), acknowledged[first99-1]+gap-m.shortest)
	}
	return a, nil
}

func (a *VegetaResults) endInterval(m *recorder, at time.Time) {
	i, _ := m.endInterval(at) // without a log, it cannot fail
	a.Recording.Intervals = append(a.Recording.Intervals, i)
}

// read returns the results in the order of the file.
func (a *VegetaResults) read(path string) (all []answered, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decode := vegeta.DecoderFor(f)
	if decode == nil {
		return nil, fmt.Errorf("%s: neither a result directory nor results of vegeta attack", path)
	}
	seen := map[string]bool{}
	for {
		var r vegeta.Result // a new one: the decoder leaves what is 0
		if err := decode(&r); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if r.Latency < 0 {
			return nil, fmt.Errorf("%s: result %d has a latency of %v", path, len(all)+1, r.Latency)
		}
		if !seen[r.URL] {
			seen[r.URL] = true
			a.URLs = append(a.URLs, r.URL)
		}
		one := answered{at: r.Timestamp, latency: r.Latency}
		one.outcome, one.kind = a.classify(&r)
		all = append(all, one)
	}
}

// classify is like that of our own requests, but for answers whose body was not kept, and for
// the texts of vegeta's errors. Which gid was submitted is not known, and not needed.
func (a *VegetaResults) classify(r *vegeta.Result) (outcome store.Status, kind string) {
	switch {
	case r.Code == 0:
		return 0, kindOfText(r.Error)
	case len(r.Body) == 0 && r.Code == 200:
		a.NoBodies++
		return store.StatusSucceeded, ""
	case len(r.Body) == 0 && r.Code == 409:
		a.NoBodies++
		return store.StatusFailed, ""
	}
	outcome, _, kind = classify(r, "unknown")
	return outcome, kind
}

// kindOfText returns the kind of error that a text of the HTTP client is about.
func kindOfText(text string) string {
	if strings.Contains(text, kindMark) {
		return transportKind(text)
	}
	for _, kind := range []string{kindRefused, kindReset, kindTimeout, kindNoHost, kindFiles} {
		if strings.Contains(strings.ToLower(text), kind) {
			return kind
		}
	}
	if strings.HasSuffix(text, "EOF") {
		return kindClosed
	}
	return kindOther
}

// inFlight returns the mean and the highest number of requests in flight. all are in the order
// of their ends.
func inFlight(all []answered, elapsed time.Duration) (mean float64, highest int) {
	sends := slices.SortedFunc(slices.Values(all), func(x, y answered) int { return x.at.Compare(y.at) })
	total, ended := time.Duration(0), 0
	for i, r := range sends {
		for !all[ended].end().After(r.at) {
			ended++
		}
		highest = max(highest, i+1-ended)
		total += r.latency
	}
	return total.Seconds() / cmp.Or(elapsed.Seconds(), 1), highest
}
