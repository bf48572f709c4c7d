package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnect_TheCertificateIsForTheNameDialled(t *testing.T) {
	for _, tt := range []struct{ url, address, want string }{
		{"rediss://redis.example:6379", "redis.example:6379", "redis.example"},
		{"rediss://redis.example:6379", "node-2.example:7000", "node-2.example"},
		{"rediss://redis.example:6379", "10.0.0.2:6379", "redis.example"},
		{"rediss://10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.2"},
	} {
		cfg := DefaultConfig()
		cfg.URL = tt.url
		servers, err := connect(cfg)
		require.NoError(t, err)
		client := servers.client(tt.address)
		require.Equal(t, tt.want, client.Options().TLSConfig.ServerName, "%s of %s", tt.address, tt.url)
		require.NoError(t, client.Close())
		require.NoError(t, servers.close())
	}
}
