package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
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
		if l, err = net.Listen("tcp", hostPort(e.host, port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port on %s: %w", e.host, err)
}

// wantedPort is the port that a server's settings ask for; 0: any.
func wantedPort(server string, settings map[string]string) (int, error) {
	value, ok := settings["port"]
	if !ok {
		return 0, nil
	}
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("start %s: port %q, must be 1 to 65535", server, value)
	}
	return port, nil
}

// dialHost is where to dial a server that listens on these addresses, separated
// by spaces or commas: the first.
func dialHost(listen string) string {
	addresses := strings.FieldsFunc(listen, func(c rune) bool { return c == ' ' || c == ',' })
	if len(addresses) == 0 || addresses[0] == "*" || addresses[0] == "0.0.0.0" {
		return "127.0.0.1"
	}
	return addresses[0]
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
