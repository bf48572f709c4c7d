package lab

import (
	"context"
	"path/filepath"
)

// RedisSentinel is the kind of Redis' sentinels. They need a setting sentinel, whose lines
// are "monitor NAME HOST PORT QUORUM" and other directives of a sentinel.
var RedisSentinel = &Kind{
	name: "Redis Sentinel", binaries: Redis.binaries, debian: Redis.debian, homebrew: Redis.homebrew,
	account: Redis.account, listenSetting: Redis.listenSetting, binariesVariable: Redis.binariesVariable, imageBinaries: Redis.imageBinaries,
	engine: func(context.Context, *Server) (engine, error) { return sentinelEngine{}, nil },
}

type sentinelEngine struct{ redisEngine }

func (sentinelEngine) defaults() map[string]string {
	return map[string]string{"bind": "127.0.0.1", "protected-mode": "yes", "daemonize": "no", "loglevel": "warning"}
}

// prepare writes the configuration into a file, in which a sentinel keeps what it has
// learned. So Restart goes on from there.
func (e sentinelEngine) prepare(ctx context.Context, s *Server) error {
	if err := e.redisEngine.prepare(ctx, s); err != nil {
		return err
	}
	return writeSecret(s, sentinelFile(s), redisConf(s))
}

func (e sentinelEngine) process(s *Server) ProcessConfig {
	cfg := e.redisEngine.process(s)
	cfg.Args, cfg.Stdin = []string{sentinelFile(s), "--sentinel"}, nil
	return cfg
}

func sentinelFile(s *Server) string { return filepath.Join(s.dir, "sentinel.conf") }
