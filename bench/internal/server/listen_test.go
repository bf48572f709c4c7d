package server

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/store"
)

func listen(t *testing.T, address string, token secret.Text) (net.Listener, error) {
	cfg := DefaultConfig()
	cfg.Listen, cfg.Tokens = address, secret.NewTokens(token.Reveal())
	l, err := Listen(cfg)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

func TestListen_RefusesWhatOtherMachinesReach(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:8080"} {
		_, err := listen(t, address, secret.Text{})
		require.ErrorIs(t, err, store.ErrInvalid, address)
		require.ErrorContains(t, err, address)
		require.ErrorContains(t, err, "use 127.0.0.1:")
		require.ErrorContains(t, err, "set SAGABENCH_SERVER_TOKEN")
		require.NotContains(t, err.Error(), "\n")
	}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0", "localhost:0"} {
		l, err := listen(t, address, secret.Text{})
		require.NoError(t, err, address)
		require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback(), address)
	}
}

func TestListen_TakesAnyAddressWithAToken(t *testing.T) {
	t.Parallel()
	l, err := listen(t, ":0", secret.New("token"))
	require.NoError(t, err)
	addr := reachable(l)
	require.Equal(t, "127.0.0.1", addr.IP.String())
	conn, err := net.Dial("tcp", addr.String())
	require.NoError(t, err)
	conn.Close()
}

func TestListen_SaysThatThePortIsInUse(t *testing.T) {
	t.Parallel()
	first, err := listen(t, "127.0.0.1:0", secret.Text{})
	require.NoError(t, err)
	_, err = listen(t, first.Addr().String(), secret.Text{})
	require.EqualError(t, err, first.Addr().String()+" is in use: stop what listens there, or choose another port (0: any that is free)")
}

func TestListen_SaysWhatIsWrongWithAnAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "8080", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:http:x"} {
		_, err := listen(t, address, secret.Text{})
		require.ErrorIs(t, err, store.ErrInvalid, address)
		require.ErrorContains(t, err, "want HOST:PORT")
	}
}
