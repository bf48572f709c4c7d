package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that Linux and others give to outgoing
// connections, so that none of those can take a server's port while the server
// restarts. Redis Cluster adds 10,000 for its bus, which keeps clear of it too.
const (
	firstPort = 12_000
	portCount = 10_000
)

// freePort picks a port that nobody listens on at this moment, unless the
// engine wants a certain one.
func freePort(e engine) (int, error) {
	if e.port != 0 {
		return e.port, nil
	}
	var err error
	for range portTries {
		port := firstPort + rand.IntN(portCount)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(e.host, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port on %s: %w", e.host, err)
}
