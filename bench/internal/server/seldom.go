package server

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Of each message and kind so many lines are logged in so much time.
const (
	seldomLines = 10
	seldomTime  = 10 * time.Second
)

// seldom logs what clients can cause as often as they like: the first lines in a
// while, and then how many more there were. Messages and kinds must be few.
type seldom struct {
	logger *slog.Logger
	mu     sync.Mutex
	counts map[[2]string]int // lines of the present while
}

func newSeldom(log *slog.Logger) *seldom {
	return &seldom{logger: log, counts: make(map[[2]string]int)}
}

// log logs a message; its lines are counted apart for each kind.
func (s *seldom) log(level slog.Level, message, kind string, args ...any) {
	s.first(seldomLines, level, message, kind, args...)
}

// first is log with another number of lines.
func (s *seldom) first(lines int, level slog.Level, message, kind string, args ...any) {
	key := [2]string{message, kind}
	s.mu.Lock()
	s.counts[key]++
	n := s.counts[key]
	s.mu.Unlock()
	if n == 1 {
		time.AfterFunc(seldomTime, func() { s.sum(lines, level, key) })
	}
	if n <= lines {
		s.logger.Log(context.Background(), level, message, args...)
	}
}

// sum ends the while, and says how much of it was left out.
func (s *seldom) sum(lines int, level slog.Level, key [2]string) {
	s.mu.Lock()
	n := s.counts[key]
	delete(s.counts, key)
	s.mu.Unlock()
	if n > lines {
		s.logger.Log(context.Background(), level, "more of the same was left out of the log",
			"message", key[0], "kind", key[1], "lines", n-lines, "within", seldomTime)
	}
}

// standard is a log for net/http: of handshakes that failed, and of connections that
// spoke something else.
func (s *seldom) standard() *log.Logger { return log.New(s, "", 0) }

// Write implements io.Writer.
func (s *seldom) Write(line []byte) (int, error) {
	s.log(slog.LevelWarn, "a connection was refused or cut off", "", "why", strings.TrimSpace(string(line)))
	return len(line), nil
}
