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
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

// lineEvery is how often a run says how it stands where nobody watches a
// terminal.
const lineEvery = 5 * time.Second

// display shows how something stands: by a bar on a terminal, by lines elsewhere.
type display struct {
	out  io.Writer
	bars *mpb.Progress // nil: not a terminal
	bar  *mpb.Bar
}

func (a *app) newDisplay() display {
	d := display{out: a.stderr}
	if f, ok := a.stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		d.bars = mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(40), mpb.WithAutoRefresh())
	}
	return d
}

// showBar is for a terminal. What stands before and after the bar is asked for by a
// goroutine of the bar's own.
func (d *display) showBar(elapsed, planned time.Duration, before, after func() string) {
	if d.bar == nil {
		d.bar = d.bars.AddBar(planned.Milliseconds(),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return before() })),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return after() })))
	}
	d.bar.SetCurrent(min(elapsed, planned).Milliseconds())
}

func (d *display) endBar() {
	if d.bar != nil {
		d.bar.Abort(true)
		d.bar.Wait()
		d.bar = nil
	}
}

func (d *display) done() {
	d.endBar()
	if d.bars != nil {
		d.bars.Wait()
	}
}

// progress shows how a run stands.
type progress struct {
	display
	said time.Duration

	mu   sync.Mutex // the bar is drawn by a goroutine of its own
	last load.Progress
	busy result.Sample // of the measured part; empty until there is one
}

func (p *progress) current() (load.Progress, result.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.busy
}

// moment takes what the app and the store did in the last second.
func (p *progress) moment(m result.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = m
}

func (a *app) newProgress(cfg *session.Config) *progress {
	p := &progress{display: a.newDisplay()}
	cfg.Status = p.status
	cfg.Load.Progress = p.show
	cfg.Watch = p.moment
	return p
}

func (p *progress) status(doing string) {
	p.endBar()
	fmt.Fprintln(p.out, doing)
}

func (p *progress) show(now load.Progress) {
	before, _ := p.current()
	if now.WarmingUp != before.WarmingUp || now.Elapsed < before.Elapsed {
		p.endBar()
		p.said = 0
	}
	p.mu.Lock()
	p.last = now
	if now.WarmingUp {
		p.busy = result.Sample{} // of the measurement before, if there was one
	}
	busy := p.busy
	p.mu.Unlock()
	if p.bars == nil {
		if p.said == 0 || now.Elapsed-p.said >= lineEvery {
			p.said = now.Elapsed
			fmt.Fprintln(p.out, phase(now)+": "+state(now, busy))
		}
		return
	}
	p.showBar(now.Elapsed, now.Planned,
		func() string { now, _ := p.current(); return phase(now) }, func() string { return state(p.current()) })
}

func phase(p load.Progress) string {
	name := "measuring"
	if p.WarmingUp {
		name = "warming up"
	}
	left := max(0, p.Planned-p.Elapsed)
	return fmt.Sprintf("%-10s %3.0f s left", name, left.Seconds())
}

func state(p load.Progress, busy result.Sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f sagas/s, p50 %.2f ms, p99 %.2f ms", p.PerS, ms(p.P50), ms(p.P99))
	if p.Errors > 0 {
		fmt.Fprintf(&b, ", %d errors", p.Errors)
	}
	for _, process := range []struct {
		name  string
		cores *float64
	}{{"app", busy.AppCores}, {"store", busy.StoreCores}} {
		if process.cores != nil {
			fmt.Fprintf(&b, ", %s %.2f cores", process.name, *process.cores)
		}
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
