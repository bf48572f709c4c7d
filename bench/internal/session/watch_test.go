package session

import (
	"context"
	"net/http"
	"testing"
	"time"

	"sagabench/bench/internal/result"
)

func TestRun_TellsWhatIsUsedAsItGoesOn(t *testing.T) {
	t.Parallel()
	told := make(chan result.Sample, 1)
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Duration = time.Hour
	cfg.Watch = func(m result.Sample) {
		select {
		case told <- m:
		default:
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		defer interrupt()
		if m := <-told; m.LoadCores == nil {
			t.Error("nothing is known of the load")
		}
	}()
	s := judged(ctx, t, cfg, serve(t, http.HandlerFunc(acknowledge)), nil)
	requireInvalid(t, s, "it is incomplete: interrupted")
}
