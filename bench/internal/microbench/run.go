package microbench

import (
	"context"
	"errors"
	"slices"
	"time"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/lua"
)

// Config says what to measure, and where.
type Config struct {
	ID      string // of the result
	Command string // that repeats the measurement

	URL      string   // of the Redis to measure, as for a store
	Binaries []string // Redis programs to start and measure instead; "redis-server": the one on PATH
	Nodes    int      // more than 1: start a Redis Cluster of so many masters of each program, and measure one of them

	// Against are scripts to compare package lua's with, see lua.ReadDir. Nothing else
	// is measured then. nil: none.
	Against []lua.Script

	Duration      time.Duration  // of the rounds, per server
	Window        time.Duration  // of one case in a round, about
	DueIndexes    []int          // sizes, besides a due index with only the sagas in flight
	FinishedSagas int            // kept on the server meanwhile
	Progress      func(Progress) // called before each case
}

// DefaultConfig returns a measurement of some seven rounds of six seconds.
func DefaultConfig() Config {
	return Config{
		URL: "redis://127.0.0.1:6379", Duration: 45 * time.Second, Window: 12 * time.Millisecond,
		DueIndexes: []int{10_000, 1_000_000}, FinishedSagas: 100_000, Progress: func(Progress) {},
	}
}

// fitDuration shortens windows so that there are about ten rounds, and leaves out large
// due indexes if preloading them takes longer than the rounds.
func (c Config) fitDuration() Config {
	const windows = 3750 // in ten rounds, with the time between them
	c.Window = min(c.Window, max(time.Millisecond, c.Duration/windows))
	if c.Duration < 3*time.Second {
		c.DueIndexes = slices.DeleteFunc(slices.Clone(c.DueIndexes), func(size int) bool { return size > 100_000 })
	}
	return c
}

// Progress says what is done next.
type Progress struct {
	Doing            string
	Round            int // from 1; 0 during preparation
	Done, Of         int // cases of the round
	Elapsed, Planned time.Duration
}

// Run measures each server for the configured duration, with interleaved rounds, and
// removes what it created. If it ends early, the summary has what was measured and is
// not valid. The error is nil unless nothing was measured.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	started := time.Now()
	servers, err := measure(ctx, cfg.fitDuration())
	switch {
	case len(servers) == 0 && ctx.Err() != nil:
		return Summary{}, errors.New("interrupted before anything was measured")
	case len(servers) == 0:
		return Summary{}, err
	}
	return summarize(context.WithoutCancel(ctx), cfg, started, servers, err), nil
}

// measure returns the results of all servers, also with an error.
func measure(ctx context.Context, cfg Config) (results []Result, err error) {
	urls := []string{cfg.URL}
	if len(cfg.Binaries) > 0 {
		urls = nil
	}
	for _, binary := range cfg.Binaries {
		url, stop, startErr := start(ctx, binary, cfg.Nodes)
		if startErr != nil {
			return nil, startErr
		}
		defer func() { err = errors.Join(err, stop()) }()
		urls = append(urls, url)
	}
	var benches []*bench
	for _, url := range urls {
		b, openErr := open(ctx, cfg, url)
		if openErr != nil {
			return nil, openErr
		}
		benches = append(benches, b)
		defer func() { err = errors.Join(err, b.close()) }()
	}
	if err = interleave(ctx, cfg, benches); ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	for _, b := range benches {
		if r := b.result(); len(r.Prices) > 0 {
			results = append(results, r)
		}
	}
	return results, err
}

// start starts a Redis, or a Redis Cluster of so many masters, and returns the URL of the
// one to measure.
func start(ctx context.Context, binary string, masters int) (url string, stop func() error, err error) {
	node := lab.Config{Binary: binary}
	if masters > 1 {
		cluster, err := redisnodes.StartCluster(ctx, redisnodes.ClusterConfig{Masters: masters, Node: node})
		if err != nil {
			return "", nil, err
		}
		return cluster.URLs()[0], cluster.Stop, nil
	}
	server, err := lab.Redis.Start(ctx, node)
	if err != nil {
		return "", nil, err
	}
	return server.URL(), server.Stop, nil
}

// interleave measures rounds in the order A B, B A, and so on, until the duration is
// over. A comparison of scripts needs pairs of rounds.
func interleave(ctx context.Context, cfg Config, benches []*bench) error {
	began, planned := time.Now(), cfg.Duration*time.Duration(len(benches))
	show := func(p Progress) {
		p.Elapsed, p.Planned = time.Since(began), planned
		cfg.Progress(p)
	}
	order := slices.Clone(benches)
	for n := 1; ; n++ {
		for _, b := range order {
			if err := b.round(ctx, show); err != nil {
				return err
			}
		}
		if time.Since(began) >= planned && (cfg.Against == nil || n%2 == 0) {
			return nil
		}
		slices.Reverse(order)
	}
}
