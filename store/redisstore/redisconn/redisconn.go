// Package redisconn reads the URLs of Redis servers, clusters and sentinels, and what they
// say about themselves.
package redisconn

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"sagabench/internal/tlsfiles"
)

// Errors of Parse. They quote nothing of the URL, which may have a password, except the name of an
// option.
var (
	ErrURL         = errors.New("want redis://[user:password@]host:port[/db], or rediss://")
	ErrSentinelURL = errors.New("want redis://sentinel:port[/db]?master_name=NAME, with &addr=host:port for more sentinels")
	errAddress     = errors.New("option addr cannot have this value: want host:port; all nodes have one password")
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
			return URL{}, cmp.Or(refusedOption(*u, url.Values{"master_name": query["master_name"]}, func(text string) error {
				_, err := redis.ParseFailoverURL(text)
				return err
			}), ErrSentinelURL)
		}
		return URL{Sentinel: options}, files.SetRedis(options.TLSConfig)
	}
	more := query["addr"]
	for _, address := range more {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" || strings.Contains(host, "@") {
			return URL{}, errAddress
		}
	}
	query.Del("addr")
	u.RawQuery = query.Encode()
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return URL{}, cmp.Or(refusedOption(*u, nil, func(text string) error {
			_, err := redis.ParseURL(text)
			return err
		}), ErrURL)
	}
	return URL{Options: *options, Addresses: append([]string{options.Addr}, more...)}, files.SetRedis(options.TLSConfig)
}

// A special character of a password that is not escaped makes the rest look like an option.
var optionName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// refusedOption returns an error that names the first option of a URL that the client refuses,
// given the needed ones. It returns nil if the client refuses no option, or the whole URL.
func refusedOption(u url.URL, needed url.Values, parse func(string) error) error {
	options := u.Query()
	u.RawQuery = needed.Encode()
	if parse(u.String()) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		with := url.Values{name: options[name]}
		maps.Copy(with, needed)
		u.RawQuery = with.Encode()
		switch err := parse(u.String()); {
		case err == nil || !optionName.MatchString(name) || strings.Contains(strings.Join(options[name], ""), "@"):
		case strings.Contains(err.Error(), "unexpected option"):
			return fmt.Errorf("option %s is unknown", name)
		default:
			return fmt.Errorf("option %s cannot have this value", name)
		}
	}
	return nil
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
