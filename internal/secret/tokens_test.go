package secret

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokens_Find_TakesEachOfThem(t *testing.T) {
	t.Parallel()
	const old, next = "the-old-token-of-all", "the-next-token-of-all"
	tokens := NewTokens(" " + next + "\n\t" + old + "\r\n")
	require.Len(t, tokens, 2)
	require.Equal(t, next, tokens.First().Reveal())
	for _, token := range []string{old, next} {
		found, ok := tokens.Find(token)
		require.True(t, ok)
		require.Equal(t, token, found.Reveal())
	}
	for _, wrong := range []string{"", old + " ", old + " " + next, next[1:], mask} {
		_, ok := tokens.Find(wrong)
		require.False(t, ok, wrong)
	}
	requireHidden(t, fmt.Sprintf("%v %+v %#v", NewTokens(hidden), NewTokens(hidden), NewTokens(hidden)))

	none := NewTokens(" \n")
	require.False(t, none.AreSet())
	require.False(t, none.First().IsSet())
	_, ok := append(none, Text{}).Find("")
	require.False(t, ok)
}

func TestText_Fingerprint_IsTheBeginningOfItsHash(t *testing.T) {
	t.Parallel()
	// printf %s hunter2-hunter2-hunter2 | sha256sum | cut -c1-8
	require.Equal(t, "ae71c4cd", New(hidden).Fingerprint())
	require.Empty(t, Text{}.Fingerprint())
}
