package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines collects output and finds lines in it as they come.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// patience is how long a test waits for what must come. It is no assertion of how fast it
// comes: other programs may use the machine meanwhile.
const patience = 2 * time.Minute

// soon ends when what a test waits for is not to be expected any more.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// find waits for a whole line that begins with prefix.
func (l *lines) find(ctx context.Context, prefix string) (string, error) {
	for {
		for line := range strings.Lines(l.String()) {
			if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, "\n") {
				return strings.TrimSpace(line), nil
			}
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return "", fmt.Errorf("no line %q in %q: %w", prefix, l.String(), ctx.Err())
		}
	}
}
