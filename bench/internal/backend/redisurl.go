package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/redis/go-redis/v9"

	"sagabench/internal/tlsfiles"
)

// redisURL is what a URL says of a Redis.
type redisURL struct {
	options   redis.Options // without an address
	addresses []string      // of one server, or of some nodes of a cluster
	sentinel  bool          // sentinels said the address
}

var errRedisURL = errors.New("the URL is not one of a Redis (redis://USER:PASSWORD@HOST:PORT/DB)")

// parseRedisURL reads a URL as package redisstore does. If it is one of sentinels, it asks
// them for the master. Its own errors do not quote the URL: it may have a password.
func parseRedisURL(ctx context.Context, raw string) (at redisURL, err error) {
	text, files := tlsfiles.CutURL(raw)
	u, err := url.Parse(text)
	if err != nil {
		return at, errRedisURL
	}
	query := u.Query()
	if query.Has("master_name") {
		failover, err := redis.ParseFailoverURL(text)
		if err != nil {
			return at, errRedisURL
		}
		if err := files.SetRedis(failover.TLSConfig); err != nil {
			return at, err
		}
		at = redisURL{options: redis.Options{Username: failover.Username, Password: failover.Password, DB: failover.DB, TLSConfig: failover.TLSConfig}, sentinel: true}
		master, err := masterOf(ctx, failover)
		at.addresses = []string{master}
		return at, err
	}
	addresses := query["addr"]
	query.Del("addr")
	u.RawQuery = query.Encode()
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return at, errRedisURL
	}
	at = redisURL{options: *options, addresses: append([]string{options.Addr}, addresses...)}
	return at, files.SetRedis(options.TLSConfig)
}

// masterOf returns the address of the master that one of the sentinels names.
func masterOf(ctx context.Context, of *redis.FailoverOptions) (address string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var errs []error
	for _, sentinel := range of.SentinelAddrs {
		client := redis.NewSentinelClient(&redis.Options{
			Addr: sentinel, Username: of.SentinelUsername, Password: of.SentinelPassword, TLSConfig: of.TLSConfig,
			MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		})
		found, err := client.GetMasterAddrByName(ctx, of.MasterName).Result()
		client.Close()
		if err == nil && len(found) == 2 {
			return net.JoinHostPort(found[0], found[1]), nil
		}
		errs = append(errs, fmt.Errorf("sentinel %s: %w", sentinel, err))
	}
	return "", errors.Join(errs...)
}
