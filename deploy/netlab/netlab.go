package netlab

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"time"
)

// ErrNotRoot says that this process lacks the right to make hosts.
var ErrNotRoot = errors.New("network namespaces require root")

// Config says which hosts to make.
type Config struct {
	Hosts []string // names: 1 to 15 of a-z, 0-9 and -, at most 200
	Link  Link     // of each host
}

// DefaultConfig returns a store host, two app hosts and a load host on a network without
// delay.
func DefaultConfig() Config { return Config{Hosts: []string{"store", "app1", "app2", "load"}} }

// Link describes how each host is connected to the switch. Its limits are those of what
// the host sends.
//
// The switch delays frames itself. The qdisc netem could do that, too, but many kernels of
// cloud machines and containers lack it.
type Link struct {
	Delay     time.Duration // of a frame from host to host, up to 10 s; a ping takes twice as long
	Loss      float64       // share of lost frames, 0 to less than 1
	Bandwidth int64         // bits per second; 0: unlimited
}

// Traffic is what a switch has done.
type Traffic struct {
	Frames int64   // that hosts sent
	Lost   int64   // of these, by Link.Loss
	Full   int64   // of these, dropped because frames of a tenth of a second waited for the bandwidth
	Busy   float64 // share of the time in which the switch was not waiting for frames
}

const (
	mostHosts = 200
	maxDelay  = 10 * time.Second
)

var hostName = regexp.MustCompile(`^[a-z0-9-]{1,15}$`)

func (c Config) validate() error {
	if len(c.Hosts) == 0 || len(c.Hosts) > mostHosts {
		return fmt.Errorf("hosts: %d, must be 1 to %d", len(c.Hosts), mostHosts)
	}
	for i, name := range c.Hosts {
		if !hostName.MatchString(name) || slices.Contains(c.Hosts[:i], name) {
			return fmt.Errorf("hosts: %q, must be 1 to 15 of a-z, 0-9 and -, and only once", name)
		}
	}
	switch l := c.Link; {
	case l.Delay < 0 || l.Delay > maxDelay:
		return fmt.Errorf("delay: %v, must be 0s to %v", l.Delay, maxDelay)
	case !(l.Loss >= 0 && l.Loss < 1):
		return fmt.Errorf("loss: %v, must be 0 to less than 1", l.Loss)
	case l.Bandwidth < 0:
		return fmt.Errorf("bandwidth: %d, must be 0 or more bits per second", l.Bandwidth)
	}
	return nil
}

// addr returns the address of host i. Any network would do: it is connected to no other.
func addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// hardware returns the address of the device of host i, from which the switch knows it.
func hardware(i int) [6]byte { return [6]byte{0x02, 0, 0, 0, 0, byte(i + 1)} }
