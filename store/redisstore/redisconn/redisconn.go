// Package redisconn reads the URLs of Redis servers, clusters and sentinels, and what they
// say about themselves.
package redisconn

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"sagabench/internal/tlsfiles"
)

// Errors of Parse. They do not quote the URL, which may have a password.
var (
	ErrURL         = errors.New("want redis://[user:password@]host:port[/db], or rediss://")
	ErrSentinelURL = errors.New("want redis://sentinel:port[/db]?master_name=NAME, with &addr=host:port for more sentinels")
)

// URL is what a URL says. The options have no settings yet but those of the URL.
type URL struct {
	Options   redis.Options          // of a server; with sentinels empty
	Addresses []string               // of one server, or of some nodes of a cluster; with sentinels none
	Sentinel  *redis.FailoverOptions // nil: there are none
}

// Parse reads a URL, and the files for TLS that it names.
func Parse(text string) (URL, error) {
	text, files := tlsfiles.CutURL(text)
	u, err := url.Parse(text)
	if err != nil {
		return URL{}, ErrURL
	}
	query := u.Query()
	if query.Has("master_name") {
		options, err := redis.ParseFailoverURL(text)
		if err != nil {
			return URL{}, ErrSentinelURL
		}
		return URL{Sentinel: options}, files.SetRedis(options.TLSConfig)
	}
	more := query["addr"]
	query.Del("addr")
	u.RawQuery = query.Encode()
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return URL{}, ErrURL
	}
	return URL{Options: *options, Addresses: append([]string{options.Addr}, more...)}, files.SetRedis(options.TLSConfig)
}

// Reachable returns the address of a server as another told it, whose own address is asked.
// A server that does not know its own address leaves the host out.
func Reachable(told, asked string) string {
	host, port, err := net.SplitHostPort(told)
	if err != nil || host != "" && host != "?" {
		return told
	}
	host, _, _ = net.SplitHostPort(asked)
	return net.JoinHostPort(host, port)
}

// Fields returns the fields of a reply to INFO.
func Fields(info string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
