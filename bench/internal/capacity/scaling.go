package capacity

import (
	"context"
	"fmt"
	"time"

	"sagabench/bench/internal/result"
)

// MostInFlight is where the scaling curve ends.
const MostInFlight = 512

// Closed makes a closed-loop measurement.
type Closed func(ctx context.Context, inFlight int, length time.Duration) (result.Step, error)

// Scaling measures the throughput with 1, 2, 4, … 512 requests in flight. What was
// measured before an error is returned with it.
func Scaling(ctx context.Context, length time.Duration, closed Closed) (points []result.Step, err error) {
	for n := 1; n <= MostInFlight; n *= 2 {
		m, err := closed(ctx, n, length)
		if m.Load.Requests > 0 {
			points = append(points, m)
		}
		if err != nil {
			return points, err
		}
	}
	for _, m := range points {
		if m.Load.AchievedPerS > 0 {
			return points, nil
		}
	}
	return points, fmt.Errorf("no saga was acknowledged with up to %d in flight", MostInFlight)
}
