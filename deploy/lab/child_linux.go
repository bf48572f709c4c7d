package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes has the kernel kill the child when the thread that forked it
// exits; see Process.run. A child under another account keeps no capability of
// ours.
func childAttributes(account string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if account == "" {
		return attributes, nil
	}
	var err error
	attributes.Credential, err = credential(account)
	return attributes, err
}

// guard has nothing to add.
func guard(int) (release func(), err error) { return func() {}, nil }

// children lists the processes that pid has started, whatever their group.
func children(pid int) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails only on a bad pattern
	var pids []int
	for _, task := range tasks {
		list, _ := os.ReadFile(task) // the thread may be gone
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
