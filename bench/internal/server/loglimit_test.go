package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
)

func TestLimitedLog_LeavesOutAFloodAndCountsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &testkit.Log{}
		s := newLimitedLog(slog.New(slog.NewTextHandler(log, nil)))
		lines := func(of string) int { return strings.Count(log.String(), of) }
		for range 1000 {
			s.log(slog.LevelWarn, "refused", "login", "n", 1)
		}
		s.log(slog.LevelWarn, "refused", "force-stop", "n", 2)
		require.Equal(t, logLimit, lines("n=1"))
		require.Equal(t, 1, lines("n=2"), "one kind does not hide another")

		time.Sleep(logPeriod + 1)
		synctest.Wait()
		require.Equal(t, 1, lines("left out"))
		require.Contains(t, log.String(), `message=refused kind=login lines=990 within=10s`)
		s.log(slog.LevelWarn, "refused", "login", "n", 3)
		time.Sleep(logPeriod + 1)
		synctest.Wait()
		require.Equal(t, 1, lines("n=3"))
		require.Equal(t, 1, lines("left out"), "not of what was logged")
		require.Empty(t, s.counts)
	})
}
