// Package peer tells the hosts apart that connect to a server, so that each can be
// given its share.
package peer

import "net/netip"

// Of returns whom an address counts for: itself, or, of IPv6, the network that one
// host usually has to itself.
func Of(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		network, _ := addr.Prefix(64) // there is one of any IPv6 address
		return network.Addr()
	}
	return addr
}
