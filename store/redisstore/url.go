package redisstore

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sagabench/internal/tlsfiles"
	"sagabench/store"
)

var (
	errURL         = errors.New("want redis://[user:password@]host:port[/db], or rediss://")
	errSentinelURL = errors.New("want redis://sentinel:port[/db]?master_name=NAME, with &addr=host:port for more sentinels")
)

// connect returns clients of the servers of Config.URL. Nothing is sent yet. Errors do not
// quote the URL, because of its password.
func connect(cfg Config) (*nodes, error) {
	n, err := parseURL(cfg)
	if err != nil {
		return nil, fmt.Errorf("redis: %w: url: %w", store.ErrInvalid, err)
	}
	return n, nil
}

func parseURL(cfg Config) (*nodes, error) {
	text, files := tlsfiles.CutURL(cfg.URL)
	u, err := url.Parse(text)
	if err != nil {
		return nil, errURL
	}
	query := u.Query()
	if query.Has("master_name") {
		options, err := redis.ParseFailoverURL(text)
		if err != nil {
			return nil, errSentinelURL
		}
		return connectSentinel(cfg, options), files.SetRedis(options.TLSConfig)
	}
	more := query["addr"]
	query.Del("addr")
	u.RawQuery = query.Encode()
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, errURL
	}
	return connectServers(cfg, *options, append([]string{options.Addr}, more...)), files.SetRedis(options.TLSConfig)
}

// connectServers returns clients that retry nothing: see the package comment.
func connectServers(cfg Config, options redis.Options, addresses []string) *nodes {
	options.DialTimeout = cfg.Timeout
	options.ReadTimeout = cfg.Timeout
	options.WriteTimeout = cfg.Timeout
	options.PoolSize = cfg.Conns
	options.ContextTimeoutEnabled = true
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.Protocol = 2 // RESP3 adds a handshake and push handling, and nothing that is used here
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return newNodes(addresses, cfg.Timeout, func(address string) *redis.Client {
		own := options
		own.Addr = address
		return redis.NewClient(&own)
	})
}

// connectSentinel returns a client that asks the sentinels for the master.
func connectSentinel(cfg Config, options *redis.FailoverOptions) *nodes {
	options.DialTimeout = cfg.Timeout
	options.ReadTimeout = cfg.Timeout
	options.WriteTimeout = cfg.Timeout
	options.PoolSize = cfg.Conns
	options.ContextTimeoutEnabled = true
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.Protocol = 2
	options.DisableIdentity = true
	name := options.MasterName + " of the sentinels at " + options.SentinelAddrs[0]
	return newNodes([]string{name}, cfg.Timeout, func(string) *redis.Client { return redis.NewFailoverClient(options) })
}
