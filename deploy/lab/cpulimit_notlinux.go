//go:build !linux

package lab

import (
	"errors"
	"os/exec"
)

// cpuLimit is nil: only Linux has limits.
type cpuLimit struct{}

func newCPULimit(float64) (*cpuLimit, error) {
	return nil, errors.New("the CPU of a server can be limited on Linux only")
}

func (*cpuLimit) start(cmd *exec.Cmd) error { return cmd.Start() }
func (*cpuLimit) words() string             { return "" }
func (*cpuLimit) release()                  {}
