// Package progress shows how far a measurement is.
package progress

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
	"sagabench/internal/format"
)

// LineEvery is the time between lines where nobody watches a terminal.
const LineEvery = 5 * time.Second

// Display shows the state of a measurement: on a terminal in one line that is rewritten,
// elsewhere in lines.
type Display struct {
	Out      io.Writer
	Terminal bool
	shown    bool // the line
}

// NewDisplay returns a display on out.
func NewDisplay(out io.Writer) Display {
	f, ok := out.(*os.File)
	return Display{Out: out, Terminal: ok && isatty.IsTerminal(f.Fd())}
}

// ShowBar rewrites the line of a terminal: a bar between two texts.
func (d *Display) ShowBar(elapsed, planned time.Duration, before, after string) {
	const width = 20
	full := int(width * min(elapsed, planned) / max(planned, 1))
	const noWrap, wrap, clear = "\x1b[?7l", "\x1b[?7h", "\x1b[K" // what is too long for the terminal is cut off
	fmt.Fprint(d.Out, "\r", noWrap, before, " [", strings.Repeat("=", full), strings.Repeat("-", width-full), "] ", after, clear, wrap)
	d.shown = true
}

// EndBar removes the line.
func (d *Display) EndBar() {
	if d.shown {
		fmt.Fprint(d.Out, "\r\x1b[K")
		d.shown = false
	}
}

// Run shows the state of a run.
type Run struct {
	Display
	said time.Duration
	last load.Progress

	mu   sync.Mutex    // the sampler has a goroutine of its own
	busy result.Sample // of the measured part; empty until there is one
}

// sampled takes what the app and the store did in the last second.
func (p *Run) sampled(s result.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = s
}

// Follow shows on out what the session does.
func Follow(out io.Writer, cfg *session.Config) *Run {
	p := &Run{Display: NewDisplay(out)}
	cfg.Status = p.status
	cfg.Load.Progress = p.show
	cfg.Watch = p.sampled
	return p
}

func (p *Run) status(doing string) {
	p.EndBar()
	fmt.Fprintln(p.Out, doing)
}

func (p *Run) show(now load.Progress) {
	if now.WarmingUp != p.last.WarmingUp || now.Elapsed < p.last.Elapsed {
		p.EndBar()
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
	case p.Terminal:
		p.ShowBar(now.Elapsed, now.Planned, phase(now), state(now, busy))
	case p.said == 0 || now.Elapsed-p.said >= LineEvery:
		p.said = now.Elapsed
		fmt.Fprintln(p.Out, phase(now)+": "+state(now, busy))
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
		b.WriteString(", " + format.Plural(p.Errors, "error"))
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
