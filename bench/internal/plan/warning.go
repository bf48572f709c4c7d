package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
	"sagabench/store"
)

// because says why the plan is more than was measured, or not to be relied on.
func (s sizing) because(results []result.Result, lines []Line) []string {
	list := []string{}
	var invalid []string
	for _, r := range results {
		if e := r.Envelope(); !e.Validity.Valid {
			invalid = append(invalid, e.Run.ID)
		}
	}
	if len(invalid) > 0 {
		list = append(list, "based on what is not valid: "+strings.Join(invalid, ", "))
	}
	if !s.e.store.Embedded() && s.peak > sameRate*s.held.rate && s.impossible() == "" {
		list = append(list, fmt.Sprintf("extrapolated: the store was measured to hold %s/s, and the peak is %s times that",
			format.Number(s.held.rate), format.Number(s.peak/s.held.rate)))
	}
	var far []string
	for _, l := range lines {
		if l.Extrapolated && l.Value != nil && costs[l.What] {
			far = append(far, l.What)
		}
	}
	if len(far) > 0 {
		list = append(list, fmt.Sprintf("extrapolated: nothing was measured within %g to %g times the planned rate of a machine for %s", nearBelow, nearAbove, strings.Join(far, ", ")))
	}
	return list
}

// costs are the lines that a cost per saga is behind.
var costs = map[string]bool{
	"app CPU": true, "store CPU": true, "store main thread": true, "store children": true,
	"written to disk": true, "store fsyncs": true, "network to the store": true, "network from the store": true,
}

// warnings are what to know before the plan is relied on.
func (s sizing) warnings() []string {
	list := []string{}
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if d, ok := store.ParseDurability(s.e.store.Durability); ok && d < store.D3 {
		warn("durability: the store was measured at %s: %s", d, store.Settings{Durability: d, Values: s.e.store.Settings}.Meaning())
	}
	if s.e.store.Durability == "" {
		warn("durability: that of the measured store is not known")
	}
	switch kept := s.e.retention; {
	case s.d.Retention == nil && (len(kept) == 0 || slices.Min(kept) != slices.Max(kept)):
		warn("retention: %s is an assumption: the results do not say one", format.Duration(s.retention))
	case len(kept) > 0 && (slices.Min(kept) != int64(s.retention.Seconds()) || slices.Max(kept) != int64(s.retention.Seconds())):
		warn("retention: %s, and the measured app kept finished sagas for %s", format.Duration(s.retention), format.Duration(time.Duration(kept[0])*time.Second))
	}
	for _, source := range s.e.sources {
		if source.search != nil && !reflect.DeepEqual(source.search.SLO, s.d.SLO) {
			warn("another service level: a search was for %s; its holds were judged again, and may be far from the highest rate at this one", source.search.SLO)
			break
		}
	}
	if s.held.next == nil {
		warn("no limit seen: no higher rate was tried, so machines may carry more")
	}
	if s.e.shared {
		warn("shared host: load, app and store took CPU from each other when they were measured; with machines of their own they may need fewer")
	}
	return list
}

// judge is whether a plan may be relied on, with its own warnings and those of the results.
func judge(results []result.Result, own []string) result.Validity {
	v := result.Validity{Valid: true, Warnings: own}
	for _, r := range results {
		v.Include(r.Envelope().Run.ID, r.Envelope().Validity)
	}
	return v
}
