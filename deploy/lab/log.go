package lab

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 16 << 10

// tee returns a writer to the tail and, unless it is nil, to w. Writers of one tail
// exclude each other, so they may share w.
func (t *tail) tee(w io.Writer) io.Writer { return teeWriter{t, w} }

type teeWriter struct {
	tail *tail
	also io.Writer
}

func (w teeWriter) Write(b []byte) (int, error) {
	w.tail.mu.Lock()
	defer w.tail.mu.Unlock()
	w.tail.buf = append(w.tail.buf, b...)
	if over := len(w.tail.buf) - tailBytes; over > 0 {
		w.tail.buf = append(w.tail.buf[:0], w.tail.buf[over:]...)
	}
	if w.also == nil {
		return len(b), nil
	}
	return w.also.Write(b)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// startError says why a process did not become ready, and has the end of its log.
type startError struct {
	name string
	log  string
	err  error
}

func (e *startError) Error() string {
	return fmt.Sprintf("start %s: %v; its log ends with: %s", e.name, e.err, cmp.Or(lastLines(e.log, 5), "nothing"))
}

func (e *startError) Unwrap() error { return e.err }

// lastLines joins the last n lines of log that are not blank.
func lastLines(log string, n int) string {
	var lines []string
	for line := range strings.Lines(log) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
