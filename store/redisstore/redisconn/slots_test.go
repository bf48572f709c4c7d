package redisconn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is none, or wants to do harm, gets an error and not a panic.
func TestParseRange_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	master := []any{"10.0.0.1", int64(7000), "its ID", []any{}}
	r, ok := parseRange([]any{int64(5), int64(16383), master, []any{nil, int64(7001), nil}}, "10.0.0.3:7000")
	require.True(t, ok)
	require.Equal(t, SlotRange{5, 16383, []ClusterNode{{"10.0.0.1:7000", "its ID"}, {"10.0.0.3:7001", "10.0.0.3:7001"}}}, r)
	for _, entry := range [][]any{
		nil,
		{int64(0), int64(5)},
		{int64(-1), int64(5), master},
		{int64(0), int64(16384), master},
		{int64(5), int64(4), master},
		{"0", int64(5), master},
		{int64(0), int64(5), "10.0.0.1:7000"},
		{int64(0), int64(5), []any{"10.0.0.1", int64(7000)}},
		{int64(0), int64(5), []any{"10.0.0.1", "7000", "its ID"}},
	} {
		_, ok := parseRange(entry, "10.0.0.3:7000")
		require.False(t, ok, "%v", entry)
	}
}
