//go:build unix

package sqlnodes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Pause stops what receives the primary's commits (SIGSTOP), so that the primary waits:
// MariaDB's process, PostgreSQL's WAL receiver. It goes on with Resume, with Stop, and when
// this process ends, however that ends.
func (r *Replicated) Pause(ctx context.Context) error {
	pid, err := r.engine.receiver(ctx, r.replica)
	if err != nil {
		return fmt.Errorf("pause the replica: %w", err)
	}
	// The WAL receiver is a child of the server, and could not end with it while it is
	// stopped. The shell waits for the end of the pipe, which is ours.
	watchdog := exec.Command("/bin/sh", "-c", `read -r line; kill -CONT "$1"`, "sh", strconv.Itoa(pid))
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not reached by Ctrl-C
	pipe, err := watchdog.StdinPipe()
	if err == nil {
		err = watchdog.Start()
	}
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err == nil {
		err = poll(ctx, func() (string, error) { return running(pid), nil })
	}
	if err != nil {
		return fmt.Errorf("pause the replica: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resume = func() {
		_ = pipe.Close()
		_ = watchdog.Wait()
	}
	return nil
}

// running names a thread of the process that has not stopped, on Linux, or is empty. Until one of
// them has taken the signal the others go on, and on a busy machine they may for a while.
func running(pid int) string {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range threads {
		text, err := os.ReadFile(name)
		_, state, _ := strings.Cut(string(text), ") ") // after the name
		if err == nil && !strings.HasPrefix(state, "T") {
			return name + " has not stopped"
		}
	}
	return ""
}
