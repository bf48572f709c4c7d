package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shirou/gopsutil/v4/net"
	gopsutil "github.com/shirou/gopsutil/v4/process"
)

// listener finds the process that listens on a TCP port of this machine, and whose
// program is one of those named: what forwards to a server is not the server.
// When a process and those that it started listen, it is the first of them.
func listener(ctx context.Context, port int, programs ...string) (pid int, err error) {
	connections, err := net.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return 0, fmt.Errorf("look for the process that listens on port %d: %w", port, err)
	}
	var pids []int32
	for _, c := range connections {
		if c.Status == "LISTEN" && int(c.Laddr.Port) == port && c.Pid > 0 {
			pids = append(pids, c.Pid)
		}
	}
	err = errNoListener
	for _, candidate := range pids {
		p, failed := gopsutil.NewProcessWithContext(ctx, candidate)
		if failed != nil {
			continue
		}
		parent, _ := p.PpidWithContext(ctx)
		if slices.Contains(pids, parent) {
			continue
		}
		name, _ := p.NameWithContext(ctx)
		if slices.Contains(programs, name) {
			return int(candidate), nil
		}
		err = fmt.Errorf("%q listens, which only forwards", name)
	}
	return 0, fmt.Errorf("port %d: %w", port, err)
}

var errNoListener = errors.New("no process that we may look at listens; run as root, or as the server's user")
