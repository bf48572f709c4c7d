package session

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/filesystem"
	"sagabench/internal/testkit"
	"sagabench/store"
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

// A server that is started in memory, for want of a disk, keeps nothing there.
func TestSettings_TakesTheClassFromTheDiskToo(t *testing.T) {
	t.Parallel()
	const memory = "/dev/shm"
	if !filesystem.InMemory(filesystem.Of(memory)) {
		t.Skip("this system has no " + memory)
	}
	s := testkit.OpenPebble(t)
	for dir, want := range map[string]store.Durability{"": store.D3, "/": store.D3, memory: store.D0} {
		got, err := (&Session{site: site{storeDir: dir}}).settings(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, want, got.Durability, dir)
		if dir != "" {
			require.Equal(t, filesystem.Of(dir), got.Values[store.FileSystem])
		}
	}
}
