package sample

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	gopsutil "github.com/shirou/gopsutil/v4/net"
)

// link is what went through a network interface since the machine was started.
type link struct {
	received, sent uint64  // bytes
	bytesPerS      float64 // its speed, each way; 0: not known
}

// interfaces is where the kernel describes network interfaces.
const interfaces = "/sys/class/net"

// readLinks reads the interfaces that lead to other machines. Those are the ones
// that have a device: bridges, tunnels and the like hand on what goes through one
// of these as well. Inside a container none has one; there it is all but loopback.
func readLinks(ctx context.Context, dir string) (map[string]link, error) {
	counters, err := gopsutil.IOCountersWithContext(ctx, true)
	if err != nil {
		return nil, err
	}
	all, real := map[string]link{}, map[string]link{}
	for _, c := range counters {
		if i, err := net.InterfaceByName(c.Name); err != nil || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		l := link{received: c.BytesRecv, sent: c.BytesSent, bytesPerS: speed(dir, c.Name)}
		all[c.Name] = l
		if _, err := os.Stat(filepath.Join(dir, c.Name, "device")); err == nil {
			real[c.Name] = l
		}
	}
	if len(real) > 0 {
		return real, nil
	}
	return all, nil
}

// speed is that of an interface, in bytes per second; 0 when it has none that the
// kernel knows, as those of virtual machines.
func speed(dir, name string) float64 {
	text, err := os.ReadFile(filepath.Join(dir, name, "speed"))
	if err != nil {
		return 0
	}
	megabits, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || megabits <= 0 {
		return 0
	}
	return float64(megabits) * 1e6 / 8
}

// networkUse is what went through links between two looks, in bytes per second
// both ways, and the share of the link that was nearest to its speed, by the
// busier of its ways. Both are nil when the links are not the ones that they were;
// the share is when the speed of a link that was used is not known.
func networkUse(before, after map[string]link, elapsed time.Duration) (bytesPerS, share *float64) {
	if after == nil || len(before) != len(after) || elapsed <= 0 {
		return nil, nil
	}
	var sum, most float64
	known := true
	for name, a := range after {
		b, ok := before[name]
		if !ok || a.received < b.received || a.sent < b.sent {
			return nil, nil
		}
		received, sent := float64(a.received-b.received)/elapsed.Seconds(), float64(a.sent-b.sent)/elapsed.Seconds()
		sum += received + sent
		switch {
		case received+sent == 0:
		case a.bytesPerS == 0:
			known = false
		default:
			most = max(most, max(received, sent)/a.bytesPerS)
		}
	}
	if !known {
		return &sum, nil
	}
	return &sum, &most
}
