// Package peer identifies the hosts that connect to a server, to limit each of them.
package peer

import "net/netip"

// Of returns the address that counts as one host: an IPv4 address, or the /64 network of an
// IPv6 address, which usually belongs to one host.
func Of(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		network, _ := addr.Prefix(64) // cannot fail for IPv6
		return network.Addr()
	}
	return addr
}
