package wire

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadReply_EveryKind(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]struct {
		items   int
		refused string
	}{
		"+OK\r\n":                       {},
		"-ERR no\r\n":                   {refused: "ERR no"},
		":-12\r\n":                      {},
		"_\r\n":                         {},
		"$3\r\na\nb\r\n":                {},
		"$0\r\n\r\n":                    {},
		"$-1\r\n":                       {},
		"*-1\r\n":                       {},
		"*0\r\n":                        {},
		"*1\r\n-ERR inside\r\n":         {items: 1},
		"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n": {items: 2},
	} {
		r := bufio.NewReader(strings.NewReader(wire + "*3\r\n:1\r\n:2\r\n:3\r\n"))
		items, err := readReply(r)
		require.Equal(t, want.items, items, wire)
		if want.refused == "" {
			require.NoError(t, err, wire)
		} else {
			require.EqualError(t, err, want.refused)
			require.True(t, IsRefusal(err))
		}
		next, err := readReply(r)
		require.NoError(t, err, wire)
		require.Equal(t, 3, next, "the whole of %q is read", wire)
	}
	for _, wire := range []string{"", "\r\n", "?\r\n", "*x\r\n", "$5\r\nab", "*2\r\n:1\r\n"} {
		_, err := readReply(bufio.NewReader(strings.NewReader(wire)))
		require.Error(t, err, "%q", wire)
		require.False(t, IsRefusal(err))
	}
}

func TestAppendCall_Encoding(t *testing.T) {
	t.Parallel()
	calls := AppendCall(AppendCall(nil, []string{"PING"}), []string{"SET", "k", ""})
	require.Equal(t, "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n", string(calls))
}
