package server

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Limits of a limitedLog, for each message and kind.
const (
	logLimit  = 10 // lines in logPeriod
	logPeriod = 10 * time.Second
)

// limitedLog logs messages that clients can cause at any rate: the first lines of a
// period, and at its end how many more there were. Messages and kinds must be few.
type limitedLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	counts map[[2]string]int // lines of the current period
}

func newLimitedLog(log *slog.Logger) *limitedLog {
	return &limitedLog{logger: log, counts: make(map[[2]string]int)}
}

// log logs a message. Each kind of a message has a limit of its own.
func (l *limitedLog) log(level slog.Level, message, kind string, args ...any) {
	key := [2]string{message, kind}
	l.mu.Lock()
	l.counts[key]++
	n := l.counts[key]
	l.mu.Unlock()
	if n == 1 {
		time.AfterFunc(logPeriod, func() { l.endPeriod(level, key) })
	}
	if n <= logLimit {
		l.logger.Log(context.Background(), level, message, args...)
	}
}

func (l *limitedLog) endPeriod(level slog.Level, key [2]string) {
	l.mu.Lock()
	n := l.counts[key]
	delete(l.counts, key)
	l.mu.Unlock()
	if n > logLimit {
		l.logger.Log(context.Background(), level, "more of the same was left out of the log",
			"message", key[0], "kind", key[1], "lines", n-logLimit, "within", logPeriod)
	}
}

// standard returns a log for net/http, which logs failed handshakes and malformed requests.
func (l *limitedLog) standard() *log.Logger { return log.New(l, "", 0) }

// Write implements io.Writer.
func (l *limitedLog) Write(line []byte) (int, error) {
	l.log(slog.LevelWarn, "a connection was refused or cut off", "", "why", strings.TrimSpace(string(line)))
	return len(line), nil
}
