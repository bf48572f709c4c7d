package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

const hidden = "hunter2-hunter2-hunter2"

func TestText_IsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := New(hidden)
	holder := struct {
		Exported   Text
		unexported Text
		Pointer    *Text
		Any        any
		List       []Text
	}{s, s, &s, s, []Text{s}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%U", "%e", "%t", "%b", "%10.3v"} {
		require.Equal(t, mask, fmt.Sprintf(verb, s), verb)
		requireHidden(t, fmt.Sprintf(verb, &s))
		requireHidden(t, fmt.Sprintf(verb, holder))
		requireHidden(t, fmt.Sprintf(verb, &holder))
		requireHidden(t, fmt.Errorf("wrapped: "+verb, holder).Error())
	}
	requireHidden(t, fmt.Sprint(s, holder))

	text, err := json.Marshal(map[string]any{"secret": s, "in": holder})
	require.NoError(t, err)
	requireHidden(t, string(text))
	require.Contains(t, string(text), `"secret":"***"`)

	for _, newHandler := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var log bytes.Buffer
		slog.New(newHandler(&log)).Info("message", "secret", s, "in", holder, slog.Group("g", "secret", s))
		requireHidden(t, log.String())
		require.Contains(t, log.String(), mask)
	}
}

// requireHidden looks for the secret as it is, in hexadecimal and as bytes.
func requireHidden(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, hidden)
	require.NotContains(t, text, fmt.Sprintf("%x", hidden))
	require.NotContains(t, text, fmt.Sprintf("%X", hidden))
	require.NotContains(t, text, fmt.Sprint([]byte(hidden)))
}

func TestText_NotSet_IsEmpty(t *testing.T) {
	t.Parallel()
	for _, s := range []Text{{}, New("")} {
		require.False(t, s.IsSet())
		require.Empty(t, s.Reveal())
		require.Empty(t, fmt.Sprint(s))
		require.False(t, s.Matches(""))
	}
}

func TestText_Matches_OnlyItself(t *testing.T) {
	t.Parallel()
	s := New(hidden)
	require.Equal(t, hidden, s.Reveal())
	require.True(t, s.Matches(hidden))
	for _, other := range []string{"", hidden[1:], hidden + " ", mask} {
		require.False(t, s.Matches(other), other)
	}
}

func TestText_Sign_DependsOnSecretAndMessage(t *testing.T) {
	t.Parallel()
	signed := New(hidden).Sign("message")
	require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, signed)
	require.Equal(t, signed, New(hidden).Sign("message"))
	require.NotEqual(t, signed, New(hidden+"x").Sign("message"))
	require.NotEqual(t, signed, New(hidden).Sign("messages"))
}
