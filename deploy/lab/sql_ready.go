package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pingMySQL asks whether process pid serves at addr. The server writes its id
// to pidFile once the port is its own, and greets whom it lets in.
func pingMySQL(ctx context.Context, addr, pidFile string, pid int) error {
	if err := firstLineIs(pidFile, pid); err != nil {
		return err
	}
	greeting, err := exchange(ctx, addr, nil, 5)
	if err != nil {
		return err
	}
	const protocol = 10
	if greeting[4] != protocol { // after the length and number of the packet
		return fmt.Errorf("%s greets with %q", addr, greeting)
	}
	return nil
}

// pingPostgres asks whether process pid serves at addr. The server keeps its
// state in a file in dir.
func pingPostgres(ctx context.Context, addr, dir string, pid int) error {
	file := filepath.Join(dir, "postmaster.pid")
	if err := firstLineIs(file, pid); err != nil {
		return err
	}
	if state := line(file, 8); state != "ready" && state != "standby" {
		return fmt.Errorf("the server is %q", state)
	}
	const sslRequest = 80877103 // any server answers it with one byte
	question := binary.BigEndian.AppendUint32(nil, 8)
	_, err := exchange(ctx, addr, binary.BigEndian.AppendUint32(question, sslRequest), 1)
	return err
}

// firstLineIs checks that a file starts with the id of a process: one that an
// earlier server left does not.
func firstLineIs(file string, pid int) error {
	if first := line(file, 1); first != strconv.Itoa(pid) {
		return fmt.Errorf("%s names process %q, not %d", file, first, pid)
	}
	return nil
}

// lineBytes is how much of a file line looks at: servers' files have lines of a path
// each.
const lineBytes = 4 << 10

// line is line n of a file, counted from 1; empty when there is none. The file is
// in a directory of the server's account: it is read only if it is a plain one.
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

// exchange sends a question to addr and reads the first bytes of the answer.
func exchange(ctx context.Context, addr string, question []byte, answerBytes int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, answerBytes)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, errors.Join(errors.New("no answer from "+addr), err)
	}
	return answer, nil
}
