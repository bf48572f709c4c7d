package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// pingTimeout bounds one check whether a server is ready.
const pingTimeout = 5 * time.Second

// dial connects to a server for one check, bounded by pingTimeout.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	return conn, conn.SetDeadline(deadline)
}

// exchange sends a request to addr and reads the first bytes of the answer.
func exchange(ctx context.Context, addr string, request []byte, answerBytes int) ([]byte, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	answer := make([]byte, answerBytes)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, fmt.Errorf("no answer from %s: %w", addr, err)
	}
	return answer, nil
}

// checkPIDFile returns an error unless the file starts with the id of the process. A
// file of an earlier server has another one.
func checkPIDFile(file string, pid int) error {
	if first := line(file, 1); first != strconv.Itoa(pid) {
		return fmt.Errorf("%s names process %q, not %d", file, first, pid)
	}
	return nil
}

// lineBytes is how much of a file line reads. The files of servers have a path per line.
const lineBytes = 4 << 10

// line returns line n of a file, counted from 1, or "". The file is in a directory of
// the server's account, so line reads it only if it is regular.
func line(path string, n int) string {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, lineBytes))
	lines := strings.Split(string(content), "\n")
	if err != nil || len(lines) < n {
		return ""
	}
	return strings.TrimSpace(lines[n-1])
}
