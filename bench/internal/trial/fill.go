package trial

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"sagabench/internal/fill"
	"sagabench/saga"
)

// sayEvery is how often the progress of filling is said.
const sayEvery = 5 * time.Second

// fill puts the sagas in that are to be there before the run: like those of the
// run, but that nothing is called.
func (t *trial) fill(ctx context.Context) (err error) {
	if t.cfg.Fill == 0 {
		return nil
	}
	s, err := t.target.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps := make([]saga.Step, t.cfg.Scenario.Steps)
	for i := range steps {
		if n := t.cfg.Scenario.Payload; n > 0 {
			steps[i].Payload = `"` + strings.Repeat("x", n) + `"`
		}
	}
	body, err := json.Marshal(saga.Saga{Steps: steps})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var said time.Time
	err = fill.Run(ctx, s, t.cfg.Fill, len(steps), body, func(done int64) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(said) > sayEvery || done == t.cfg.Fill {
			said = time.Now()
			t.status("filling the store: %d of %d sagas", done, t.cfg.Fill)
		}
	})
	t.left += t.cfg.Fill
	return err
}
