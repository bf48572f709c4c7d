package redisstore

import (
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sagabench/store"
	"sagabench/store/redisstore/redisconn"
)

// connect returns clients of the servers of Config.URL. Nothing is sent yet.
func connect(cfg Config) (*nodes, error) {
	u, err := redisconn.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("redis: %w: url: %w", store.ErrInvalid, err)
	case u.Sentinel != nil:
		return connectSentinel(cfg, u.Sentinel), nil
	}
	return connectServers(cfg, u.Options, u.Addresses), nil
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
		if own.TLSConfig != nil {
			own.TLSConfig = own.TLSConfig.Clone()
			own.TLSConfig.ServerName = serverName(address, own.TLSConfig.ServerName)
		}
		return redis.NewClient(&own)
	})
}

// serverName returns the name that the certificate of a server must have: that which is
// dialled. If a cluster, whose URL has a name, tells only IP addresses, it is that of the
// URL.
func serverName(address, ofURL string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil && net.ParseIP(ofURL) == nil {
		return ofURL
	}
	return host
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
