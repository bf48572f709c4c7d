package validity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sagabench/bench/internal/result"
)

// CPUs lists the logical CPUs that the processes on the load generator's machine may use,
// in order. A list is empty if it is unknown, or if the process is on another machine.
type CPUs struct{ Load, App, Store []int }

// Lists returns the CPUs as a result has them.
func (c CPUs) Lists() result.CPUs {
	list := func(cpus []int) *string {
		if len(cpus) == 0 {
			return nil
		}
		text := cpuList(cpus)
		return &text
	}
	return result.CPUs{Load: list(c.Load), App: list(c.App), Store: list(c.Store)}
}

// sharedCPUs says which CPUs the processes on one machine share.
func (j *judgement) sharedCPUs() string {
	var overlaps, own []string
	of := []struct {
		name string
		cpus []int
	}{{"load", j.e.CPUs.Load}, {"app", j.e.CPUs.App}, {"store", j.e.CPUs.Store}}
	for i, a := range of {
		if len(a.cpus) == 0 {
			continue
		}
		own = append(own, a.name+" "+cpuList(a.cpus))
		for _, b := range of[i+1:] {
			both := slices.DeleteFunc(slices.Clone(a.cpus), func(cpu int) bool { return !slices.Contains(b.cpus, cpu) })
			if len(both) > 0 {
				overlaps = append(overlaps, fmt.Sprintf("%s and %s %s", a.name, b.name, cpuList(both)))
			}
		}
	}
	same := func(cpus []int) bool { return len(cpus) == 0 || slices.Equal(cpus, j.e.CPUs.Load) }
	switch {
	case len(own) < 2:
		return ""
	case same(j.e.CPUs.App) && same(j.e.CPUs.Store):
		return " and its CPUs (" + cpuList(j.e.CPUs.Load) + ")"
	case len(overlaps) > 0:
		return " and CPUs (" + strings.Join(overlaps, ", ") + ")"
	default:
		return ", each on CPUs of its own (" + strings.Join(own, ", ") + ")"
	}
}

// cpuList writes CPUs as the kernel does: 0-3,8.
func cpuList(cpus []int) string {
	var spans []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		span := strconv.Itoa(cpus[i])
		if last > i {
			span += "-" + strconv.Itoa(cpus[last])
		}
		spans = append(spans, span)
		i = last + 1
	}
	return strings.Join(spans, ",")
}
