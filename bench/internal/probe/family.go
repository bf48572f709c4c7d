package probe

import (
	"context"
	"errors"
	"fmt"
)

// family is a process and those that it started: PostgreSQL has one for each
// connection. What those used that have ended is not lost: the kernel adds it to
// the one that started them.
type family struct{ pid int }

// familyTries bounds how often a family is counted again because one of it ended
// meanwhile.
const familyTries = 20

var errRestless = errors.New("its processes come and go too fast to be counted")

// cpuSeconds is what the family used since it began, all threads, user and system.
func (f family) cpuSeconds(ctx context.Context) (*float64, error) {
	for range familyTries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before, err := cpuOf(f.pid)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", f.pid, err)
		}
		sum := before.own + before.ended
		whole := true
		for _, child := range childrenOf(f.pid) {
			used, err := cpuOf(child)
			whole = whole && err == nil // else it has just ended
			sum += used.own + used.ended
		}
		after, err := cpuOf(f.pid)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", f.pid, err)
		}
		if whole && after.ended == before.ended {
			return &sum, nil
		}
	}
	return nil, fmt.Errorf("process %d: %w", f.pid, errRestless)
}

// processCPU is in seconds.
type processCPU struct {
	own   float64
	ended float64 // of its children that have ended, and theirs
}
