package trial

import (
	"context"
	"fmt"

	"sagabench/bench/internal/report"
	"sagabench/store/open"
)

// Load drives servers that already run. The store behind them, when it is
// known, is measured and audited; it is left as it is. An embedded store is held
// by its server, so it cannot be.
func Load(ctx context.Context, cfg Config, servers []string, target *open.Target) (report.Summary, error) {
	which := fmt.Sprintf("%d servers", len(servers))
	if len(servers) == 1 {
		which = "a server"
	}
	if cfg.Protocol == ProtocolDTM {
		which += " with dtm's API"
	}
	t := &trial{cfg: cfg, target: target, topology: "load on this machine, " + which + " that ran before"}
	if err := cfg.callable(ctx, servers); err != nil {
		return report.Summary{}, err
	}
	for _, s := range servers {
		t.shared = t.shared || local(s)
	}
	if target != nil {
		t.shared = t.shared || local(target.URL())
		if err := t.inspect(ctx); err != nil {
			return report.Summary{}, err
		}
	}
	if err := report.MakeDir(cfg.Dir); err != nil {
		return report.Summary{}, err
	}
	t.made = true
	var m measurement
	err := t.aim(servers)
	if err == nil {
		m, err = t.once(ctx)
	}
	return t.end(ctx, m, err)
}
