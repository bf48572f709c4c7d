package trial

import (
	"context"
	"fmt"

	"sagabench/bench/internal/result"
	"sagabench/store/open"
)

// Running are servers that run already, by their URLs. The store behind them, when it
// is known, is measured and audited; it is left as it is. An embedded store is held
// by its server, so it cannot be.
func Running(urls []string, target *open.Target) Servers {
	return Servers{func(cfg Config) *trial {
		which := fmt.Sprintf("%d servers", len(urls))
		if len(urls) == 1 {
			which = "a server"
		}
		if cfg.Protocol == ProtocolDTM {
			which += " with dtm's API"
		}
		t := &trial{cfg: cfg, target: target, topology: "load on this machine, " + which + " that ran before"}
		for _, u := range urls {
			t.shared = t.shared || local(u)
		}
		if target != nil {
			t.shared = t.shared || local(target.URL())
		}
		t.reach = func(ctx context.Context) error { return cfg.reach(ctx, urls) }
		t.serve = func(ctx context.Context, drive func(context.Context) error) error { return t.attach(ctx, urls, drive) }
		return t
	}}
}

// attach has servers driven that run already.
func (t *trial) attach(ctx context.Context, urls []string, drive func(context.Context) error) error {
	if err := t.reach(ctx); err != nil {
		return err
	}
	if t.target != nil {
		if err := t.inspect(ctx); err != nil {
			return err
		}
	}
	if err := result.MakeDir(t.cfg.Dir); err != nil {
		return err
	}
	t.made = true
	if err := t.aim(urls); err != nil {
		return err
	}
	return drive(ctx)
}
