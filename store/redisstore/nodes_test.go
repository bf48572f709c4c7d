package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is none, or wants to do harm, gets an error and not a panic.
func TestParseRange_RefusesWhatCannotBe(t *testing.T) {
	master := []any{"10.0.0.1", int64(7000), "its ID", []any{}}
	r, ok := parseRange([]any{int64(5), int64(16383), master, []any{nil, int64(7001), "its replica"}}, "10.0.0.3:7000")
	require.True(t, ok)
	require.Equal(t, slotRange{5, 16383, []member{{"10.0.0.1:7000", "its ID"}, {"10.0.0.3:7001", "its replica"}}}, r)
	for _, entry := range [][]any{
		nil,
		{int64(0), int64(5)},
		{int64(-1), int64(5), master},
		{int64(0), int64(16384), master},
		{int64(5), int64(4), master},
		{"0", int64(5), master},
		{int64(0), int64(5), "10.0.0.1:7000"},
		{int64(0), int64(5), []any{"10.0.0.1", int64(7000)}},
	} {
		_, ok := parseRange(entry, "10.0.0.3:7000")
		require.False(t, ok, "%v", entry)
	}
}

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
