package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the kernel's USER_HZ, 100 wherever Go runs on Linux.
const ticksPerSecond = 100

func cpuOf(pid int) (processCPU, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processCPU{}, err
	}
	return parseStat(string(text))
}

// parseStat reads the fields utime, stime, cutime and cstime of proc(5): 14 to 17,
// of which the second, a name in parentheses, may hold anything.
func parseStat(text string) (processCPU, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // from the third on
	const first = 14 - 3
	if len(fields) < first+4 {
		return processCPU{}, fmt.Errorf("unknown format %q", text)
	}
	var seconds [4]float64
	for i := range seconds {
		ticks, err := strconv.ParseInt(fields[first+i], 10, 64)
		if err != nil {
			return processCPU{}, err
		}
		seconds[i] = float64(ticks) / ticksPerSecond
	}
	return processCPU{own: seconds[0] + seconds[1], ended: seconds[2] + seconds[3]}, nil
}

// childrenOf lists the processes that pid has started and that have not ended.
func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails only on a bad pattern
	for _, task := range tasks {
		list, _ := os.ReadFile(task) // the thread may be gone
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
