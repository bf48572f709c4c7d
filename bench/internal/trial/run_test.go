package trial

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocal_KnowsThisMachine(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"redis://localhost:1": true, "mysql://u:p@127.0.0.1:3306/": true, "postgres://u@[::1]/db": true, "http://127.9.9.9": true,
		"mysql://u@db.internal/": false, "postgres://u@192.0.2.1/db": false, "": false, "mysql://u:%@127.0.0.1": false,
	} {
		require.Equal(t, want, local(url), url)
	}
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		own := a.(*net.IPNet).IP
		require.True(t, local("mysql://u@"+net.JoinHostPort(own.String(), "3306")), own)
	}
}
