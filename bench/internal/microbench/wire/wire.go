// Package wire sends calls to a Redis server that were encoded before. A Redis client opens
// and closes the connections and logs in, but does not see the calls: its work would take
// CPU from the server on a machine that they share.
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Timeout bounds the wait for the replies of one round trip.
const Timeout = 20 * time.Second

// Conn is a connection.
type Conn struct {
	net.Conn
	Received int64 // bytes

	client  *redis.Client
	replies *bufio.Reader
}

// Dial connects and logs in.
func Dial(ctx context.Context, options redis.Options) (*Conn, error) {
	c := &Conn{}
	dial := redis.NewDialer(&options)
	options.Dialer = func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		c.Conn, err = dial(ctx, network, address)
		return c.Conn, err
	}
	c.client = redis.NewClient(&options)
	if err := c.client.Ping(ctx).Err(); err != nil {
		c.client.Close()
		return nil, err
	}
	c.replies = bufio.NewReaderSize(c, 1<<16)
	return c, nil
}

// Close disconnects.
func (c *Conn) Close() error { return c.client.Close() }

// Read reads from the connection and counts.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.Received += int64(n)
	return n, err
}

// Load is what Send sends.
type Load struct {
	Trips []RoundTrip
	Items int // expected in each reply, or AnyReply
}

// AnyReply accepts every reply but an error.
const AnyReply = -1

// RoundTrip holds calls that are sent before their replies are read.
type RoundTrip struct {
	Bytes []byte
	Calls int
}

// AppendCall encodes a call.
func AppendCall(to []byte, args []string) []byte {
	to = fmt.Appendf(to, "*%d\r\n", len(args))
	for _, arg := range args {
		to = append(to, '$')
		to = strconv.AppendInt(to, int64(len(arg)), 10)
		to = append(to, "\r\n"...)
		to = append(to, arg...)
		to = append(to, "\r\n"...)
	}
	return to
}

// Send sends the load over all connections and returns how long that took. An error
// reply, or one with an unexpected number of items, is returned as a refusal after the
// whole load was sent.
func Send(conns []*Conn, l *Load) (time.Duration, error) {
	failures := make([]error, len(conns))
	var group sync.WaitGroup
	began := time.Now()
	for i, c := range conns {
		group.Go(func() { failures[i] = c.send(l, i, len(conns)) })
	}
	group.Wait()
	took := time.Since(began)
	var refused error
	for _, err := range failures {
		if err != nil && !IsRefusal(err) { // a lost connection matters more
			return took, err
		}
		if refused == nil {
			refused = err
		}
	}
	return took, refused
}

// send makes the round trips first, first+stride, ….
func (c *Conn) send(l *Load, first, stride int) error {
	var refused error
	for i := first; i < len(l.Trips); i += stride {
		if err := c.SetDeadline(time.Now().Add(Timeout)); err != nil {
			return err
		}
		if _, err := c.Write(l.Trips[i].Bytes); err != nil {
			return err
		}
		for range l.Trips[i].Calls {
			items, err := readReply(c.replies)
			if err == nil && l.Items != AnyReply && items != l.Items {
				err = refusal(fmt.Sprintf("the reply has %d items instead of %d: not everything was done", items, l.Items))
			}
			if err != nil && !IsRefusal(err) {
				return err
			}
			if refused == nil {
				refused = err
			}
		}
	}
	return refused
}

// refusal is a reply that is an error or not as expected. The connection stays usable.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError implements redis.Error.
func (r refusal) RedisError() {}

// IsRefusal reports whether err is the server's reply, and not a broken connection.
func IsRefusal(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

var errProtocol = errors.New("the server does not speak the Redis protocol")

// readReply reads a reply and returns its number of items if it is an array, else 0. An
// error reply is returned as a refusal.
func readReply(r *bufio.Reader) (items int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 3 {
		return 0, errProtocol
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+', ':', '_':
		return 0, nil
	case '-':
		return 0, refusal(text)
	case '$', '*':
	default:
		return 0, errProtocol
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, errProtocol
	}
	if n < 0 { // nil
		return 0, nil
	}
	if kind == '$' {
		_, err := r.Discard(n + len("\r\n"))
		return 0, err
	}
	for range n {
		if _, err := readReply(r); err != nil && !IsRefusal(err) {
			return 0, err
		}
	}
	return n, nil
}
