package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

// lineEvery is the time between lines where nobody watches a terminal.
const lineEvery = 5 * time.Second

// display shows the state of a measurement: on a terminal in one line that is rewritten,
// elsewhere in lines.
type display struct {
	out      io.Writer
	terminal bool
	shown    bool // the line
}

func (a *app) newDisplay() display {
	f, ok := a.stderr.(*os.File)
	return display{out: a.stderr, terminal: ok && isatty.IsTerminal(f.Fd())}
}

// showBar rewrites the line of a terminal: a bar between two texts.
func (d *display) showBar(elapsed, planned time.Duration, before, after string) {
	const width = 20
	full := int(width * min(elapsed, planned) / max(planned, 1))
	const noWrap, wrap, clear = "\x1b[?7l", "\x1b[?7h", "\x1b[K" // what is too long for the terminal is cut off
	fmt.Fprint(d.out, "\r", noWrap, before, " [", strings.Repeat("=", full), strings.Repeat("-", width-full), "] ", after, clear, wrap)
	d.shown = true
}

// endBar removes the line.
func (d *display) endBar() {
	if d.shown {
		fmt.Fprint(d.out, "\r\x1b[K")
		d.shown = false
	}
}

// progress shows the state of a run.
type progress struct {
	display
	said time.Duration
	last load.Progress

	mu   sync.Mutex    // the sampler has a goroutine of its own
	busy result.Sample // of the measured part; empty until there is one
}

// sampled takes what the app and the store did in the last second.
func (p *progress) sampled(s result.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = s
}

func (a *app) newProgress(cfg *session.Config) *progress {
	p := &progress{display: a.newDisplay()}
	cfg.Status = p.status
	cfg.Load.Progress = p.show
	cfg.Watch = p.sampled
	return p
}

func (p *progress) status(doing string) {
	p.endBar()
	fmt.Fprintln(p.out, doing)
}

func (p *progress) show(now load.Progress) {
	if now.WarmingUp != p.last.WarmingUp || now.Elapsed < p.last.Elapsed {
		p.endBar()
		p.said = 0
	}
	p.last = now
	p.mu.Lock()
	if now.WarmingUp {
		p.busy = result.Sample{} // of the measurement before, if there was one
	}
	busy := p.busy
	p.mu.Unlock()
	switch {
	case p.terminal:
		p.showBar(now.Elapsed, now.Planned, phase(now), state(now, busy))
	case p.said == 0 || now.Elapsed-p.said >= lineEvery:
		p.said = now.Elapsed
		fmt.Fprintln(p.out, phase(now)+": "+state(now, busy))
	}
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
