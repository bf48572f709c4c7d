package microbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// calls are encoded commands, one after the other: they are made before a
// measurement begins, so that it holds no work of the client that can be done
// earlier.
type calls struct {
	bytes []byte
	ends  []int // of each command
}

func (c *calls) add(words ...string) {
	c.bytes = fmt.Appendf(c.bytes, "*%d\r\n", len(words))
	for _, word := range words {
		c.bytes = append(c.bytes, '$')
		c.bytes = strconv.AppendInt(c.bytes, int64(len(word)), 10)
		c.bytes = append(c.bytes, '\r', '\n')
		c.bytes = append(c.bytes, word...)
		c.bytes = append(c.bytes, '\r', '\n')
	}
	c.ends = append(c.ends, len(c.bytes))
}

// part is the encoding of commands from up to, not including, to.
func (c *calls) part(from, to int) []byte {
	begin := 0
	if from > 0 {
		begin = c.ends[from-1]
	}
	return c.bytes[begin:c.ends[to-1]]
}

// reply is what a command was answered.
type reply struct {
	kind  byte    // as on the wire: + - : $ * _
	text  string  // of + and -; of $ if it was kept
	n     int     // of :, and how many items a * has; -1 is nil
	items []reply // of * if they were kept
}

// refused is an error that the server answered: the connection goes on.
type refused string

func (r refused) Error() string { return string(r) }

func isRefused(err error) bool {
	var no refused
	return errors.As(err, &no)
}

// timeout bounds the wait for one answer. The dearest calls take milliseconds.
const timeout = 20 * time.Second

// client is a connection to a server.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	sent int64 // bytes
	got  int64
}

func dial(ctx context.Context, options *redis.Options) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := redis.NewDialer(options)(ctx, options.Network, options.Addr)
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", options.Addr, err)
	}
	c := &client{conn: conn}
	c.r = bufio.NewReaderSize(c, 1<<16)
	if err := c.login(options); err != nil {
		conn.Close()
		return nil, fmt.Errorf("redis at %s: %w", options.Addr, err)
	}
	return c, nil
}

func (c *client) login(options *redis.Options) error {
	if options.Password != "" {
		words := []string{"AUTH", options.Username, options.Password}
		if options.Username == "" {
			words = []string{"AUTH", options.Password}
		}
		if _, err := c.do(words...); err != nil {
			return err
		}
	}
	if options.DB != 0 {
		if _, err := c.do("SELECT", strconv.Itoa(options.DB)); err != nil {
			return err
		}
	}
	return nil
}

// Read implements io.Reader, for the buffer in front of the connection.
func (c *client) Read(p []byte) (int, error) {
	n, err := c.conn.Read(p)
	c.got += int64(n)
	return n, err
}

func (c *client) write(p []byte) error {
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	n, err := c.conn.Write(p)
	c.sent += int64(n)
	return err
}

// do sends a command and keeps its reply. What the server refuses is an error of
// type refused.
func (c *client) do(words ...string) (reply, error) {
	var one calls
	one.add(words...)
	if err := c.write(one.bytes); err != nil {
		return reply{}, err
	}
	r, err := readReply(c.r, true)
	if err == nil && r.kind == '-' {
		err = fmt.Errorf("%s: %w", words[0], refused(r.text))
	}
	return r, err
}

// doAll sends commands, some at a time, and forgets their replies. The first one
// that was refused is the error.
func (c *client) doAll(all *calls) error {
	const most = 256
	var failure error
	for from := 0; from < len(all.ends); from += most {
		to := min(from+most, len(all.ends))
		if err := c.write(all.part(from, to)); err != nil {
			return err
		}
		for range to - from {
			r, err := readReply(c.r, false)
			if err != nil {
				return err
			}
			if r.kind == '-' && failure == nil {
				failure = refused(r.text)
			}
		}
	}
	return failure
}

var errProtocol = errors.New("the server answers with something that is not Redis' protocol")

// readReply reads a reply, without its contents unless they are to be kept.
func readReply(r *bufio.Reader, keep bool) (reply, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return reply{}, err
	}
	if len(line) < 3 {
		return reply{}, errProtocol
	}
	got := reply{kind: line[0]}
	rest := line[1 : len(line)-2]
	switch got.kind {
	case '+', '-':
		got.text = string(rest)
		return got, nil
	case '_':
		return got, nil
	case ':', '$', '*':
		if got.n, err = strconv.Atoi(string(rest)); err != nil {
			return got, errProtocol
		}
	default:
		return got, errProtocol
	}
	switch {
	case got.kind == '$' && got.n >= 0:
		return got, got.readText(r, keep)
	case got.kind == '*':
		return got, got.readItems(r, keep)
	}
	return got, nil
}

func (got *reply) readText(r *bufio.Reader, keep bool) error {
	if !keep {
		_, err := r.Discard(got.n + 2)
		return err
	}
	var text strings.Builder
	if _, err := io.CopyN(&text, r, int64(got.n)); err != nil {
		return err
	}
	got.text = text.String()
	_, err := r.Discard(2)
	return err
}

func (got *reply) readItems(r *bufio.Reader, keep bool) error {
	for range got.n {
		item, err := readReply(r, keep)
		if err != nil {
			return err
		}
		if keep {
			got.items = append(got.items, item)
		}
	}
	return nil
}
