//go:build unix

package lab_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// reach tries, as another user of the machine, to get at a server without its
// password, and lists how that was possible.
func reach(kind, addr, dir string, pid int) (ways []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	try := func(way string, err error) {
		if err == nil {
			ways = append(ways, way)
		}
	}
	for _, dsn := range map[string][]string{
		"mysql": {"root@tcp(" + addr + ")/", "@tcp(" + addr + ")/", "root@unix(" + filepath.Join(dir, "lab.sock") + ")/"},
		"pgx":   {"postgres://postgres@" + addr + "/postgres?sslmode=disable", "host=" + dir + " user=postgres"},
	}[kind] {
		db, err := sql.Open(kind, dsn)
		if err == nil {
			err = db.PingContext(ctx)
			db.Close()
		}
		try(dsn, err)
	}
	if kind == "redis" {
		try("redis://"+addr, pingWithoutPassword(addr))
	}
	try("its directory", os.Chdir(dir))
	_, err := os.ReadDir(dir)
	try("the names of its files", err)
	for _, name := range []string{"environ", "mem", "fd"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err == nil && name == "fd" {
			_, err = f.Readdirnames(1)
		} else if err == nil {
			_, err = f.Read(make([]byte, 1))
		}
		try("its "+name, err)
	}
	try("a signal", syscall.Kill(pid, 0))
	return ways
}

func pingWithoutPassword(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err = io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	if answer, _ := bufio.NewReader(conn).ReadString('\n'); answer != "+PONG\r\n" {
		return errors.New(answer)
	}
	return nil
}

// everybodysCopy copies this test binary to where every user may run it.
func everybodysCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sagabench-stranger-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	path := filepath.Join(dir, "stranger")
	require.NoError(t, os.WriteFile(path, program, 0o755))
	return path
}

// What root starts is closed to the machine's other users: see reach. Without
// root there is nobody to be, and only the password is tried.
func TestStart_LetsNobodyIn_WithoutThePassword(t *testing.T) {
	t.Parallel()
	stranger := everybodysCopy(t)
	for kind, start := range map[string]func(t *testing.T) *lab.Server{
		"redis": func(t *testing.T) *lab.Server { return labtest.Start(t, lab.Redis, lab.Config{}) },
		"mysql": func(t *testing.T) *lab.Server { return labtest.Start(t, lab.MySQL, lab.Config{}) },
		"pgx":   func(t *testing.T) *lab.Server { return labtest.Start(t, lab.Postgres, lab.Config{}) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			u, err := url.Parse(server.URL())
			require.NoError(t, err)
			password, _ := u.User.Password()
			require.GreaterOrEqual(t, len(password), 20)
			if kind == "redis" {
				require.NoError(t, connect(t, server).Ping(t.Context()).Err())
			} else {
				require.NoError(t, sqlKind{driver: kind}.open(t, server, "").PingContext(t.Context()))
			}

			out, err := lab.StartProcess(t.Context(), lab.ProcessConfig{
				Path: stranger, Dir: "/", User: nobody(),
				Env: []string{childVariable + "=" + strings.Join([]string{"stranger", kind, server.Addr(), server.Dir(), strconv.Itoa(server.PID())}, " ")},
			})
			require.NoError(t, err)
			require.NoError(t, out.Wait(), out.Log())
			if os.Geteuid() == 0 {
				require.Equal(t, "[]\n", out.Log(), "what nobody reached")
			} else {
				require.NotRegexp(t, "://|@|host=", out.Log(), "no way past the password")
			}
			require.NotContains(t, server.Log(), password)
			for _, pid := range append(childrenOf(server.PID()), server.PID()) {
				requireUnprivileged(t, pid)
				args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if err == nil { // it may be gone
					require.NotContains(t, string(args), password)
				}
			}
		})
	}
}

func nobody() string {
	if os.Geteuid() == 0 {
		return "nobody"
	}
	return ""
}

// requireUnprivileged wants a process to hold no capability, and one that root
// started to be neither root nor nobody.
func requireUnprivileged(t *testing.T, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return // it has ended
	}
	for line := range strings.Lines(string(status)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t"); name {
		case "Uid", "Gid", "Groups":
			if os.Geteuid() != 0 {
				continue
			}
			for id := range strings.FieldsSeq(value) {
				require.NotContains(t, []string{"0", "65534"}, id, line)
			}
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			require.Equal(t, "0000000000000000", value, line)
		}
	}
}

// Redis' protocol tells the password to whoever has taken the port.
func TestStartRedis_TakesAnotherPassword_WithAnotherPort(t *testing.T) {
	t.Parallel()
	redisServer, err := lab.FindServer("redis-server", "", "")
	require.NoError(t, err)
	binary := filepath.Join(enterable(t), "redis-server")
	require.NoError(t, os.WriteFile(binary, []byte(`#!/bin/sh
cat >conf
grep requirepass conf >>passwords
[ $(wc -l <passwords) -gt 1 ] || { echo 'Address already in use'; exit 1; }
exec `+redisServer+` - <conf
`), 0o755))
	server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary})
	require.NoError(t, server.Restart(t.Context()))
	text, err := os.ReadFile(filepath.Join(server.Dir(), "passwords"))
	require.NoError(t, err)
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, all, 3)
	require.NotEqual(t, all[0], all[1])
	require.Equal(t, all[1], all[2], "the URL never changes")
	require.Contains(t, all[2], server.Password())
}

// The server's account does not learn what root's environment holds.
func TestStart_HidesTheEnvironmentOfRoot_FromTheServer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the server is ours, and so is the environment")
	}
	t.Setenv("SAGABENCH_SERVER_TOKEN", "topsecret")
	server := labtest.Start(t, lab.Redis, lab.Config{})
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", server.PID()))
	require.NoError(t, err)
	require.NotContains(t, string(environ), "topsecret")
}
