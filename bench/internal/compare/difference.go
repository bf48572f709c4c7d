package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Difference is a condition that the two sides do not share.
type Difference struct {
	Of   string `json:"of"` // store, setting, scenario, load, version or machine
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// fact is a condition of a run.
type fact struct{ of, name, value string }

// differences returns the conditions that two runs do not share. A condition of only one
// run is unknown for the other.
func differences(a, b result.Summary) []Difference {
	type key struct{ of, name string }
	var order []key
	values := map[key][2]string{}
	for side, s := range []result.Summary{a, b} {
		for _, f := range facts(s) {
			k := key{f.of, f.name}
			pair, known := values[k]
			if !known {
				order = append(order, k)
			}
			pair[side] = f.value
			values[k] = pair
		}
	}
	list := []Difference{}
	for _, k := range order {
		if v := values[k]; v[0] != v[1] {
			list = append(list, Difference{k.of, k.name, cmp.Or(v[0], format.Unknown), cmp.Or(v[1], format.Unknown)})
		}
	}
	return list
}

func facts(s result.Summary) []fact {
	r, l, e := s.Run, s.Load, s.Environment
	topology, nodes, _ := strings.Cut(r.Topology, "; the store is ") // what is compared, like a setting
	all := []fact{
		{"store", "driver", r.Store.Driver},
		{"store", "version", r.Store.Version},
		{"store", "durability", r.Store.Durability},
		{"store", "nodes", nodes},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Store.Settings)) {
		all = append(all, fact{"setting", name, r.Store.Settings[name]})
	}
	all = append(
		all,
		fact{"scenario", "steps", strconv.Itoa(r.Scenario.Steps)},
		fact{"scenario", "branches", r.Scenario.Branches},
		fact{"scenario", "payload", strconv.Itoa(r.Scenario.Payload)},
		fact{"scenario", "fail", fmt.Sprint(r.Scenario.Fail)},
		fact{"load", "mode", l.Mode},
		fact{"load", "in flight", strconv.Itoa(l.InFlight)},
		// Not the offered rate: that of random arrivals differs from run to run.
		fact{"load", "profile", l.Profile},
		fact{"load", "arrival", l.Arrival},
		fact{"version", "commit", deref(r.Commit)},
		fact{"version", "go", e.Go},
	)
	for _, name := range slices.Sorted(maps.Keys(e.Versions)) {
		all = append(all, fact{"version", name, e.Versions[name]})
	}
	return append(
		all,
		fact{"machine", "topology", topology},
		fact{"machine", "CPU", e.CPU},
		fact{"machine", "cores", strconv.Itoa(e.Cores)},
		fact{"machine", "memory", strconv.FormatInt(e.Memory, 10)},
		fact{"machine", "kernel", e.Kernel},
		fact{"machine", "governor", deref(e.Governor)},
	)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
