package peer

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf_IsTheAddressOrItsNetwork(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"10.1.2.3": "10.1.2.3", "::ffff:10.1.2.3": "10.1.2.3", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "fe80::1%eth0": "fe80::",
	} {
		require.Equal(t, want, Of(netip.MustParseAddr(addr)).String())
	}
}
