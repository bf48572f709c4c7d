package cli

import (
	"fmt"
	"sync"
	"time"

	"sagabench/lua/microbench"
)

// luaProgress shows how bench lua stands: a bar on a terminal while rounds go on, a
// line now and then elsewhere.
type luaProgress struct {
	display
	began   time.Time // the rounds
	planned time.Duration
	said    time.Time
	stage   string // last said

	mu   sync.Mutex // the bar is drawn by a goroutine of its own
	text string
}

func (a *app) newLuaProgress(planned time.Duration) *luaProgress {
	return &luaProgress{display: a.newDisplay(), planned: planned}
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
	p.showBar(elapsed, p.planned, func() string { return "measuring" }, p.current)
}

func (p *luaProgress) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}
