package microbench

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

// timeout bounds the wait for the replies of one round trip.
const timeout = 20 * time.Second

// sender is a connection that sends calls encoded before. The Redis client opens and
// closes it and logs in, but does not see the calls: its work would take CPU from the
// server on a machine that they share.
type sender struct {
	client   *redis.Client
	conn     net.Conn
	replies  *bufio.Reader
	received int64 // bytes
}

func newSender(ctx context.Context, options redis.Options) (*sender, error) {
	s := &sender{}
	dial := redis.NewDialer(&options)
	options.Dialer = func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		s.conn, err = dial(ctx, network, address)
		return s.conn, err
	}
	s.client = redis.NewClient(&options)
	if err := s.client.Ping(ctx).Err(); err != nil {
		s.client.Close()
		return nil, err
	}
	s.replies = bufio.NewReaderSize(s, 1<<16)
	return s, nil
}

// Read reads from the connection and counts.
func (s *sender) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	s.received += int64(n)
	return n, err
}

// load is what one window sends.
type load struct {
	trips []roundTrip
	items int // expected in each reply, or anyReply
}

// anyReply accepts every reply but an error.
const anyReply = -1

// roundTrip holds calls that are sent before their replies are read.
type roundTrip struct {
	bytes []byte
	calls int
}

// appendCall encodes a call.
func appendCall(to []byte, args []string) []byte {
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

// send sends the load over all connections and returns how long that took. An error
// reply, or one with an unexpected number of items, is returned as a refusal after the
// whole load was sent.
func send(senders []*sender, l *load) (time.Duration, error) {
	failures := make([]error, len(senders))
	var group sync.WaitGroup
	began := time.Now()
	for i, s := range senders {
		group.Go(func() { failures[i] = s.send(l, i, len(senders)) })
	}
	group.Wait()
	took := time.Since(began)
	var refused error
	for _, err := range failures {
		if err != nil && !isRefusal(err) { // a lost connection matters more
			return took, err
		}
		if refused == nil {
			refused = err
		}
	}
	return took, refused
}

// send makes the round trips first, first+stride, ….
func (s *sender) send(l *load, first, stride int) error {
	var refused error
	for i := first; i < len(l.trips); i += stride {
		if err := s.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		if _, err := s.conn.Write(l.trips[i].bytes); err != nil {
			return err
		}
		for range l.trips[i].calls {
			items, err := readReply(s.replies)
			if err == nil && l.items != anyReply && items != l.items {
				err = refusal(fmt.Sprintf("the reply has %d items instead of %d: not everything was done", items, l.items))
			}
			if err != nil && !isRefusal(err) {
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

// isRefusal reports whether err is the server's reply, and not a broken connection.
func isRefusal(err error) bool {
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
		if _, err := readReply(r); err != nil && !isRefusal(err) {
			return 0, err
		}
	}
	return n, nil
}
