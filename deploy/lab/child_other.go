//go:build !unix

package lab

import (
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

// guard can do nothing here: a child that was not stopped outlives us.
func guard(int) (release func(), err error) { return func() {}, nil }

func killGroup(p *os.Process) { _ = p.Kill() }

// processGone is never sure, so that nothing is swept.
func processGone(int) bool { return false }
