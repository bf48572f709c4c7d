package probe

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// cpusOf are the logical CPUs that the processes of this machine may run on, in
// order; nil when one of them cannot be asked, as on other systems than Linux, or
// when there is none.
func cpusOf(pids ...int) (all []int) {
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return nil
		}
		for line := range strings.Lines(string(status)) {
			if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				all = append(all, parseCPUs(strings.TrimSpace(list))...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// parseCPUs reads the kernel's format, as 0-3,8.
func parseCPUs(list string) (cpus []int) {
	for span := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(span, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil {
			return nil
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
