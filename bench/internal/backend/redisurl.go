package backend

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"sagabench/store/redisstore/redisconn"
)

// redisURL is what a URL says of a Redis.
type redisURL struct {
	options   redis.Options // without an address
	addresses []string      // of one server, or of some nodes of a cluster
	sentinel  bool          // sentinels said the address
}

var errRedisURL = errors.New("the URL is not one of a Redis (redis://USER:PASSWORD@HOST:PORT/DB)")

// parseRedisURL reads a URL. If it is one of sentinels, it asks them for the master.
func parseRedisURL(ctx context.Context, raw string) (at redisURL, err error) {
	u, err := redisconn.Parse(raw)
	switch {
	case errors.Is(err, redisconn.ErrURL) || errors.Is(err, redisconn.ErrSentinelURL):
		return at, errRedisURL
	case err != nil:
		return at, err
	case u.Sentinel == nil:
		return redisURL{options: u.Options, addresses: u.Addresses}, nil
	}
	master, err := masterOf(ctx, u.Sentinel)
	return redisURL{
		options:   redis.Options{Username: u.Sentinel.Username, Password: u.Sentinel.Password, DB: u.Sentinel.DB, TLSConfig: u.Sentinel.TLSConfig},
		addresses: []string{master}, sentinel: true,
	}, err
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
