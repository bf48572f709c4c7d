package outage

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport_LogsTheBeginningAndTheEndOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	l := Log{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})), Failed: "away", Recovered: "back"}
	away := errors.New("refused")
	for _, err := range []error{nil, away, away, away, nil, nil, away, nil} {
		l.Report(err, "store", "redis")
	}
	const once = "level=WARN msg=away store=redis error=refused\nlevel=INFO msg=back store=redis\n"
	require.Equal(t, once+once, out.String())
}
