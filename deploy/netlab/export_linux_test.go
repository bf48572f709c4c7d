package netlab

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Switch is a switch between sockets in place of TAP devices.
type Switch struct{ *netSwitch }

// StartSwitch starts a switch with n ports. Each of ends is what a host would have.
func StartSwitch(t testing.TB, link Link, n int) (s Switch, ends []int) {
	s = Switch{newSwitch(link)}
	for range n {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.SetNonblock(pair[0], true)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.ports = append(s.ports, &port{tap: pair[0]})
		ends = append(ends, pair[1])
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
		for _, end := range ends {
			_ = unix.Close(end)
		}
	})
	return s, ends
}

// Traffic returns what the switch has done.
func (s Switch) Traffic() Traffic { return s.traffic() }

// CPUSets divides the cores that we may use among n hosts.
func CPUSets(n int) ([][]int, error) { return cpuSets(n) }

// Hardware returns the hardware address of a host.
func Hardware(i int) [6]byte { return hardware(i) }
