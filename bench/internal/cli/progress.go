package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/trial"
)

// lineEvery is how often a run says how it stands where nobody watches a
// terminal.
const lineEvery = 5 * time.Second

// progress shows how a run stands: a bar on a terminal, a line now and then
// elsewhere.
type progress struct {
	out  io.Writer
	bars *mpb.Progress // nil: not a terminal
	bar  *mpb.Bar
	said time.Duration

	mu   sync.Mutex // the bar is drawn by a goroutine of its own
	last load.Progress
}

func (p *progress) current() load.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (a *app) newProgress(cfg *trial.Config) *progress {
	p := &progress{out: a.stderr}
	if f, ok := a.stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.bars = mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(40), mpb.WithAutoRefresh())
	}
	cfg.Status = p.status
	cfg.Load.Progress = p.show
	return p
}

func (p *progress) status(doing string) {
	p.endBar()
	fmt.Fprintln(p.out, doing)
}

func (p *progress) show(now load.Progress) {
	if now.WarmingUp != p.current().WarmingUp {
		p.endBar()
		p.said = 0
	}
	p.mu.Lock()
	p.last = now
	p.mu.Unlock()
	if p.bars == nil {
		if p.said == 0 || now.Elapsed-p.said >= lineEvery {
			p.said = now.Elapsed
			fmt.Fprintln(p.out, phase(now)+" "+state(now))
		}
		return
	}
	if p.bar == nil {
		p.bar = p.bars.AddBar(now.Planned.Milliseconds(),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return phase(p.current()) })),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return state(p.current()) })))
	}
	p.bar.SetCurrent(min(now.Elapsed, now.Planned).Milliseconds())
}

func (p *progress) endBar() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar.Wait()
		p.bar = nil
	}
}

func (p *progress) done() {
	p.endBar()
	if p.bars != nil {
		p.bars.Wait()
	}
}

func phase(p load.Progress) string {
	name := "measuring"
	if p.WarmingUp {
		name = "warming up"
	}
	return fmt.Sprintf("%-10s %3.0f/%.0f s", name, p.Elapsed.Seconds(), p.Planned.Seconds())
}

func state(p load.Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f sagas/s, p50 %.2f ms, p99 %.2f ms", p.PerS, ms(p.P50), ms(p.P99))
	if p.Errors > 0 {
		fmt.Fprintf(&b, ", %d errors", p.Errors)
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
