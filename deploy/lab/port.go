package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
)

// Ports are below the range of outgoing connections on Linux and other systems, so that
// no connection takes a server's port while the server restarts. So is the port of Redis
// Cluster's bus, which is 10,000 higher.
const (
	firstPort = 12_000
	portCount = 10_000
)

// freePort returns a port that nobody listens on at this moment.
func freePort(host string) (int, error) {
	var err error
	for range portTries {
		port := firstPort + rand.IntN(portCount)
		var l net.Listener
		if l, err = net.Listen("tcp", hostPort(host, port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port on %s: %w", host, err)
}

// portSetting returns the port in a server's settings, or 0 without one.
func portSetting(settings map[string]string) (int, error) {
	value, ok := settings["port"]
	if !ok {
		return 0, nil
	}
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("port %q, must be 1 to 65535", value)
	}
	return port, nil
}

// dialHost returns the first of the addresses that a server listens on, which are
// separated by spaces or commas.
func dialHost(listen string) string {
	addresses := strings.FieldsFunc(listen, func(c rune) bool { return c == ' ' || c == ',' })
	if len(addresses) == 0 || addresses[0] == "*" || addresses[0] == "0.0.0.0" {
		return "127.0.0.1"
	}
	return addresses[0]
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
