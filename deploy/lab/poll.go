package lab

import (
	"context"
	"fmt"
	"time"
)

const pollPause = 20 * time.Millisecond

// Poll calls check until it returns nil or the context ends. The error holds the last
// one of check.
func Poll(ctx context.Context, check func(context.Context) error) error {
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), last)
		case <-pause.C:
		}
	}
}
