package lab

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
)

// pingTimeout bounds one question: Redis is either up or about to be.
const pingTimeout = time.Second

// pingRedis asks the server at addr whether it serves, and whether it is
// process pid: between the choice of a free port and its use somebody else's
// Redis may have taken it, and would answer for ours. One whose ACL keeps the
// default user out cannot be asked, and counts as ready.
func pingRedis(ctx context.Context, addr, password string, acl bool, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	c := redisConn{conn, bufio.NewReader(conn)}

	var refused redisError
	switch _, err := c.call("AUTH", password); {
	case acl && errors.As(err, &refused) && strings.HasPrefix(string(refused), "WRONGPASS"):
		return nil
	case err != nil:
		return err
	}
	switch reply, err := c.call("PING"); {
	case err != nil: // LOADING, for one
		return err
	case reply != "PONG":
		return fmt.Errorf("%s answered PING with %q", addr, reply)
	}
	info, err := c.call("INFO", "server")
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("another Redis listens on %s", addr)
	}
	return nil
}

// redisConn speaks as much of Redis' protocol as pingRedis needs.
type redisConn struct {
	w io.Writer
	r *bufio.Reader
}

// redisError is an error reply, without its leading minus.
type redisError string

func (e redisError) Error() string { return string(e) }

// call sends a command and reads its reply, a simple or a bulk string.
func (c redisConn) call(args ...string) (string, error) {
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(c.w, request.String()); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", fmt.Errorf("%s: empty reply", args[0])
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+':
		return rest, nil
	case '-':
		return "", redisError(rest)
	case '$':
		size, err := strconv.Atoi(rest)
		if err != nil || size < 0 {
			return "", fmt.Errorf("%s: reply %q", args[0], line)
		}
		bulk := make([]byte, size)
		if _, err := io.ReadFull(c.r, bulk); err != nil {
			return "", fmt.Errorf("%s: %w", args[0], err)
		}
		return string(bulk), nil
	default:
		return "", fmt.Errorf("%s: reply %q", args[0], line)
	}
}
