package microbench

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadReply_EveryKind(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]reply{
		"+OK\r\n":        {kind: '+', text: "OK"},
		"-ERR no\r\n":    {kind: '-', text: "ERR no"},
		":-12\r\n":       {kind: ':', n: -12},
		"$3\r\na\nb\r\n": {kind: '$', n: 3, text: "a\nb"},
		"$0\r\n\r\n":     {kind: '$'},
		"$-1\r\n":        {kind: '$', n: -1},
		"*-1\r\n":        {kind: '*', n: -1},
		"*0\r\n":         {kind: '*'},
		"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n": {kind: '*', n: 2, items: []reply{
			{kind: ':', n: 1}, {kind: '*', n: 1, items: []reply{{kind: '$', n: 1, text: "x"}}},
		}},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(wire)), true)
		require.NoError(t, err, wire)
		require.Equal(t, want, got, wire)

		// Without its contents, all of it is read all the same.
		r := bufio.NewReader(strings.NewReader(wire + ":7\r\n"))
		got, err = readReply(r, false)
		require.NoError(t, err, wire)
		require.Equal(t, want.n, got.n, wire)
		next, err := readReply(r, false)
		require.NoError(t, err, wire)
		require.Equal(t, 7, next.n, wire)
	}
	for _, wire := range []string{"", "\r\n", "?\r\n", ":x\r\n", "$5\r\nab", "*2\r\n:1\r\n"} {
		_, err := readReply(bufio.NewReader(strings.NewReader(wire)), true)
		require.Error(t, err, "%q", wire)
	}
}

func TestCalls_Encoding(t *testing.T) {
	t.Parallel()
	var c calls
	c.add("PING")
	c.add("SET", "k", "")
	require.Equal(t, "*1\r\n$4\r\nPING\r\n", string(c.part(0, 1)))
	require.Equal(t, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n", string(c.part(1, 2)))
	require.Equal(t, string(c.bytes), string(c.part(0, 2)))
}
