//go:build !linux

package netlab

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
)

// Lab is a network of hosts. There is none: it requires Linux.
type Lab struct{}

// Host is a host of a lab. There is none: it requires Linux.
type Host struct{}

// Start returns an error that wraps errors.ErrUnsupported.
func Start(cfg Config) (*Lab, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start a lab: %w", err)
	}
	return nil, fmt.Errorf("start a lab: %w on %s: it requires Linux", errors.ErrUnsupported, runtime.GOOS)
}

// Hosts returns the hosts.
func (*Lab) Hosts() []*Host { return nil }

// Host returns the host of that name.
func (*Lab) Host(string) *Host { return nil }

// Traffic returns what the switch has done so far.
func (*Lab) Traffic() Traffic { return Traffic{} }

// Close ends the lab.
func (*Lab) Close() error { return nil }

// Name returns the name of the host.
func (*Host) Name() string { return "" }

// Addr returns the address of the host.
func (*Host) Addr() netip.Addr { return netip.Addr{} }

// CPUs returns the CPUs of the host.
func (*Host) CPUs() []int { return nil }

// PID returns the id of the host's first process.
func (*Host) PID() int { return 0 }

// Start starts cmd on the host.
func (*Host) Start(*exec.Cmd) error { return errors.ErrUnsupported }
