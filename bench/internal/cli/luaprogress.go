package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"sagabench/lua/microbench"
)

// luaProgress shows how bench lua stands: a bar on a terminal while rounds go on, a
// line now and then elsewhere.
type luaProgress struct {
	out     io.Writer
	bars    *mpb.Progress // nil: not a terminal
	bar     *mpb.Bar
	began   time.Time // the rounds
	planned time.Duration
	said    time.Time
	stage   string // last said

	mu   sync.Mutex // the bar is drawn by a goroutine of its own
	text string
}

func (a *app) newLuaProgress(planned time.Duration) *luaProgress {
	p := &luaProgress{out: a.stderr, planned: planned}
	if f, ok := a.stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.bars = mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(40), mpb.WithAutoRefresh())
	}
	return p
}

// begin says that rounds begin, and how long they will take.
func (p *luaProgress) begin(planned time.Duration) {
	p.endBar()
	p.began, p.planned, p.said = time.Now(), planned, time.Time{}
}

func (p *luaProgress) status(doing string) {
	p.endBar()
	if doing != p.stage {
		fmt.Fprintln(p.out, doing)
	}
	p.stage = doing
}

func (p *luaProgress) show(now microbench.Progress) {
	if now.Round == 0 {
		p.status(now.Doing)
		return
	}
	p.stage = ""
	elapsed := time.Since(p.began)
	text := fmt.Sprintf("round %d, %2d%%: %s", now.Round, 100*now.Done/now.Of, now.Doing)
	if p.bars == nil {
		if time.Since(p.said) >= lineEvery {
			p.said = time.Now()
			fmt.Fprintf(p.out, "measuring  %3.0f/%.0f s %s\n", elapsed.Seconds(), p.planned.Seconds(), text)
		}
		return
	}
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
	if p.bar == nil {
		p.bar = p.bars.AddBar(p.planned.Milliseconds(),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name("measuring")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.text
			})))
	}
	p.bar.SetCurrent(min(elapsed, p.planned).Milliseconds())
}

func (p *luaProgress) endBar() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar.Wait()
		p.bar = nil
	}
}

func (p *luaProgress) done() {
	p.endBar()
	if p.bars != nil {
		p.bars.Wait()
	}
}
