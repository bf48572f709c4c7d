//go:build unix

package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

func connect(t *testing.T, s *lab.Server) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	options.DisableIdentity = true
	client := redis.NewClient(options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// enterable is a directory that a server's account may pass through.
func enterable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	return dir
}

// requireGone waits for the end of a process that need not be our child. One
// that nobody has waited for counts: in a container, that may be for ever.
func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
	}, time.Minute, 5*time.Millisecond, "process %d still runs", pid)
}

func requireRefused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestStartRedis_AppliesSettings_OnEveryBinary(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary, Settings: map[string]string{
				"maxmemory":                  "64mb",
				"save":                       "900 1\n300 10",
				"client-output-buffer-limit": "pubsub 1mb 2mb 3",
			}})
			client := connect(t, server)
			setting := func(name string) string {
				return client.ConfigGet(t.Context(), name).Val()[name]
			}
			require.NoError(t, client.Ping(t.Context()).Err())
			require.Equal(t, "67108864", setting("maxmemory"))
			require.Equal(t, "900 1 300 10", setting("save"))
			require.Contains(t, setting("client-output-buffer-limit"), "pubsub 1048576 2097152 3")
			require.Equal(t, "no", setting("appendonly"))
			require.Equal(t, "127.0.0.1", setting("bind"))
			require.Equal(t, server.Dir(), setting("dir"))

			require.NoError(t, server.Stop())
			require.NoDirExists(t, server.Dir())
			requireGone(t, server.PID())
		})
	}
}

func TestStartRedis_KeepsNothingOnDisk_ByDefault(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	client := connect(t, server)
	require.Equal(t, map[string]string{"save": ""}, client.ConfigGet(t.Context(), "save").Val())
	require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, redis.Nil, client.Get(t.Context(), "key").Err())
	entries, err := os.ReadDir(server.Dir())
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestStartRedis_TakesAnyPassword(t *testing.T) {
	t.Parallel()
	const password = "p@ss/wo:rd \"quoted\" \\ # ü"
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"requirepass": password}})
	require.NoError(t, connect(t, server).Ping(t.Context()).Err())

	stranger := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer stranger.Close()
	require.ErrorContains(t, stranger.Ping(t.Context()).Err(), "NOAUTH")

	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", server.PID()))
	if err == nil { // there is no /proc outside Linux
		require.NotContains(t, string(args), "quoted")
	}
}

func TestStartRedis_RunsWithAnACLThatKeepsUsOut(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"user": "default off\nworker on >secret ~* +@all",
	}})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "worker", Password: "secret"})
	defer client.Close()
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestStartRedis_RunsManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 8
	servers := make(chan *lab.Server, many)
	failed := make(chan error, many)
	for range many {
		go func() {
			server, err := lab.Redis.Start(t.Context(), lab.Config{})
			failed <- err
			servers <- server
		}()
	}
	addrs := make(map[string]bool)
	for range many {
		require.NoError(t, <-failed)
		server := <-servers
		defer func() { require.NoError(t, server.Stop()) }()
		addrs[server.Addr()] = true
	}
	require.Len(t, addrs, many)
}

func TestStartRedis_QuotesTheServer_WhenItRefusesASetting(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(enterable(t), "data")
	_, err := lab.Redis.Start(t.Context(), lab.Config{
		Dir:      dir,
		Settings: map[string]string{"appendfsync": "sometimes"},
	})
	require.ErrorContains(t, err, "start redis-server")
	require.ErrorContains(t, err, "exit status 1")
	require.ErrorContains(t, err, "'appendfsync sometimes'")
	require.NotContains(t, err.Error(), "\n")
}

// A server in the background would outlive us.
func TestStartRedis_RefusesTheBackground(t *testing.T) {
	t.Parallel()
	_, err := lab.Redis.Start(t.Context(), lab.Config{Settings: map[string]string{"Daemonize": "yes"}})
	require.ErrorContains(t, err, `start Redis: settings: Daemonize: "yes", must be no`)
}

func TestStartRedis_SaysWhatToInstall_WithoutTheBinary(t *testing.T) {
	t.Parallel()
	for _, binary := range []string{"redis-server-of-nobody", "/nowhere/redis-server"} {
		_, err := lab.Redis.Start(t.Context(), lab.Config{Binary: binary})
		require.ErrorIs(t, err, lab.ErrNotInstalled)
		require.ErrorContains(t, err, binary)
		require.ErrorContains(t, err, "apt-get install redis-server")
		require.ErrorContains(t, err, "brew install redis")
	}
}

func TestStartRedis_SaysThatThePortIsTaken(t *testing.T) {
	t.Parallel()
	first := labtest.Start(t, lab.Redis, lab.Config{})
	_, port, err := net.SplitHostPort(first.Addr())
	require.NoError(t, err)
	// The first one answers on that port: it must not be taken for the second.
	_, err = lab.Redis.Start(t.Context(), lab.Config{Settings: map[string]string{"port": port}})
	require.ErrorContains(t, err, "Address already in use")

	_, err = lab.Redis.Start(t.Context(), lab.Config{Settings: map[string]string{"port": "http"}})
	require.ErrorContains(t, err, `port "http", must be 1 to 65535`)
}

func TestStartRedis_StopsTrying_WhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := lab.Redis.Start(ctx, lab.Config{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestRestart_KeepsDataAndAddress_WithAppendOnly(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary, Settings: map[string]string{
				"appendonly": "yes", "appendfsync": "always",
			}})
			client := connect(t, server)
			addr, pid := server.Addr(), server.PID()

			require.NoError(t, client.Set(t.Context(), "a", "1", 0).Err())
			require.NoError(t, server.Restart(t.Context()))
			require.Equal(t, "1", client.Get(t.Context(), "a").Val())
			require.NotEqual(t, pid, server.PID())
			requireGone(t, pid)

			pid = server.PID()
			require.NoError(t, client.Set(t.Context(), "b", "2", 0).Err())
			require.NoError(t, server.Kill())
			requireGone(t, pid)
			requireRefused(t, addr)
			require.DirExists(t, server.Dir())
			require.NoError(t, server.Restart(t.Context()))
			require.Equal(t, []any{"1", "2"}, client.MGet(t.Context(), "a", "b").Val())
			require.Equal(t, addr, server.Addr())
		})
	}
}

func TestRestart_FollowsACrash(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	require.NoError(t, syscall.Kill(server.PID(), syscall.SIGKILL))
	requireGone(t, server.PID())
	require.NoError(t, server.Restart(t.Context()))
	require.NoError(t, connect(t, server).Ping(t.Context()).Err())
}

func TestStop_IsFinal_AndKeepsADirectoryThatIsNotOurs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(enterable(t), "data")
	server := labtest.Start(t, lab.Redis, lab.Config{Dir: dir, Settings: map[string]string{"save": "900 1"}})
	require.NoError(t, connect(t, server).Set(t.Context(), "key", "value", 0).Err())
	require.NoError(t, server.Stop())
	require.FileExists(t, filepath.Join(dir, "dump.rdb"), "it was asked to end, not killed")
	require.NoError(t, server.Stop())
	require.Error(t, server.Restart(t.Context()))
	require.Error(t, server.Kill())

	again := labtest.Start(t, lab.Redis, lab.Config{Dir: dir})
	require.Equal(t, "value", connect(t, again).Get(t.Context(), "key").Val())
}

func TestStop_ReportsACrash(t *testing.T) {
	t.Parallel()
	server, err := lab.Redis.Start(t.Context(), lab.Config{})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(server.PID(), syscall.SIGABRT))
	requireGone(t, server.PID())
	require.ErrorContains(t, server.Stop(), "redis-server ended")
	require.Contains(t, server.Log(), "crashed by signal")
}

func TestSignal_PausesAndContinues(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	require.NoError(t, server.Signal(syscall.SIGSTOP))
	defer func() { require.NoError(t, server.Signal(syscall.SIGCONT)) }()

	conn, err := net.Dial("tcp", server.Addr()) // the kernel accepts it
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "PING\r\n") // without a password
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	reply := bufio.NewReader(conn)
	_, err = reply.ReadString('\n')
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, server.Signal(syscall.SIGCONT))
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	line, err := reply.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "NOAUTH")
}
