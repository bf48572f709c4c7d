package branch

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"sagabench/store"
)

// allowList holds the hosts that branches may be on.
type allowList struct {
	names    map[string]bool // NAME, or NAME:PORT
	networks []allowedNetwork
}

type allowedNetwork struct {
	prefix netip.Prefix
	port   uint16 // 0: any
}

// hostName rejects a last label of digits alone, which is a mistyped address.
var hostName = regexp.MustCompile(`^([a-z0-9_-]+\.)*[0-9]*[a-z_-][a-z0-9_-]*$`)

func newAllowList(entries []string, loopback bool) (allowList, error) {
	l := allowList{names: make(map[string]bool)}
	if loopback {
		l.networks = []allowedNetwork{{netip.MustParsePrefix("127.0.0.0/8"), 0}, {netip.MustParsePrefix("::1/128"), 0}}
	}
	for _, entry := range entries {
		if !l.add(entry) {
			return l, fmt.Errorf("branch allow-list: %w: %q is no host name, IP address or network, nor a name or address with a port",
				store.ErrInvalid, entry)
		}
	}
	return l, nil
}

func (l *allowList) add(entry string) bool {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		l.networks = append(l.networks, allowedNetwork{prefix.Masked(), 0})
		return true
	}
	host, port, withPort := entry, uint16(0), false
	if h, p, err := net.SplitHostPort(entry); err == nil {
		if port = portNumber(p); port == 0 {
			return false
		}
		host, withPort = h, true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		l.networks = append(l.networks, allowedNetwork{netip.PrefixFrom(addr, addr.BitLen()), port})
		return true
	}
	name := strings.ToLower(host)
	if !hostName.MatchString(name) {
		return false
	}
	if withPort {
		name = net.JoinHostPort(name, strconv.Itoa(int(port)))
	}
	l.names[name] = true
	return true
}

// name reports whether a host may be called on a port, whatever its name resolves to.
func (l allowList) name(host, port string) bool {
	host = strings.ToLower(host)
	return l.names[host] || l.names[net.JoinHostPort(host, port)]
}

// address reports whether an address may be called on a port. A network such as 0.0.0.0/0
// does not allow the loopback addresses in it, nor 0.0.0.0 and [::], which lead to them.
func (l allowList) address(addr netip.Addr, port uint16) bool {
	addr = addr.Unmap()
	here := addr.IsLoopback() || addr.IsUnspecified()
	for _, n := range l.networks {
		if here && !n.prefix.Addr().IsLoopback() {
			continue
		}
		if n.prefix.Contains(addr) && (n.port == 0 || n.port == port) {
			return true
		}
	}
	return false
}

// portNumber returns 0 if text is no port.
func portNumber(text string) uint16 {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}

func notAllowed(host string) error {
	return fmt.Errorf("%s is not on the allow-list of branch hosts", host)
}
