package cli

import (
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/shirou/gopsutil/v4/process"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/testkit"
)

// Secrets of these tests.
const (
	password   = "topsecret-password"
	adminToken = "topsecret-admin-token"
	userToken  = "topsecret-user-token"
)

// The secrets reach the child that they are for, and nothing else: no argument,
// no file, no line.
func TestRun_KeepsItsSecrets(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"requirepass": password}})
	p := newProgram(t, "SAGABENCH_REDIS_URL="+redis.URL(), "SAGABENCH_SERVER_TOKEN="+userToken, "SAGABENCH_SERVER_ADMIN_TOKEN="+adminToken)
	require.Contains(t, redis.URL(), password)

	cmd := p.command("run", "redis", "--json", "--duration", "1h", "--warmup", "0s", "--branches", "http", "--fail", "0.1")
	stdout, stderr := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "measuring")
	require.NoError(t, err)
	child, err := process.NewProcess(int32(childOf(t, cmd.Process.Pid)))
	require.NoError(t, err)
	arguments, err := child.Cmdline()
	require.NoError(t, err)
	environment, err := child.Environ()
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Contains(t, stdout.String(), `"schema"`, stderr)
	require.Contains(t, arguments, "serve redis")
	require.NotContains(t, arguments, "topsecret")
	require.Contains(t, strings.Join(environment, "\n"), userToken, "the child has it from the environment")
	require.NotContains(t, stdout.String()+stderr.String(), "topsecret")
	p.requireNoSecrets()

	// Of a URL on the command line the result says all but the password.
	got := p.run("run", redis.URL(), "--json", "--duration", "200ms", "--warmup", "50ms", "--out", "named")
	require.Contains(t, got.stdout, "redis://:***@127.0.0.1")
	require.Regexp(t, `"acknowledged": *[1-9]`, got.stdout)
	require.NotContains(t, got.stdout+got.stderr, "topsecret")
	p.requireNoSecrets()
	for _, arguments := range [][]string{{"--help"}, {"serve", "--help"}, {"coordinator", "--help"}, {"load", "--help"}, {"check", "redis"}, {"serve", "redis", "--listen", "nonsense"}} {
		got := p.run(arguments...)
		require.NotContains(t, got.stdout+got.stderr, "topsecret", arguments)
	}
}

// requireNoSecrets reads every file that the program wrote.
func (p program) requireNoSecrets() {
	p.t.Helper()
	read := 0
	require.NoError(p.t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		read++
		content, err := os.ReadFile(path)
		require.NotContains(p.t, string(content), "topsecret", path)
		return err
	}))
	require.Greater(p.t, read, 4)
}

func TestServe_LogsNoSecrets(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"requirepass": password}})
	s := newProgram(t, "SAGABENCH_REDIS_URL="+redis.URL(), "SAGABENCH_SERVER_TOKEN="+userToken).serve("redis", "--listen", "127.0.0.1:0")
	require.NoError(t, redis.Kill())
	for _, path := range []string{"/bench/saga", "/healthz", "/ui", "/metrics"} {
		_, body := fetch(t, s.url+path, userToken)
		require.NotContains(t, body, "topsecret", path)
	}
	_, err := s.err.find(soon(t), "time=")
	require.NoError(t, err, "it logs that the store is away")
	s.stop()
	require.NotContains(t, s.out.String()+s.err.String(), "topsecret")
}

// What others keep in the same Redis stays, and no command is sent that could
// touch it.
func TestRun_LeavesOthersAlone(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer client.Close()
	others := map[string]string{"other": "1", "saga2:{0}:x": "2", "b1234567:{0}:x": "3", "saga": "4"}
	for key, value := range others {
		require.NoError(t, client.Set(t.Context(), key, value, 0).Err())
	}
	p := newProgram(t, "SAGABENCH_REDIS_URL="+server.URL())
	p.run("run", "redis", "--duration", "300ms", "--warmup", "100ms").requireRan(t)
	s := p.start("coordinator", "redis", "--listen", "127.0.0.1:0")
	p.load("redis", "--protocol", "dtm", "--target", s.url)
	s.stop()
	for key, value := range others {
		require.Equal(t, value, client.Get(t.Context(), key).Val(), key)
	}
	stats, err := client.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	used := regexp.MustCompile(`cmdstat_([a-z|_-]+):`).FindAllStringSubmatch(stats, -1)
	require.Greater(t, len(used), 5)
	for _, command := range used {
		for _, dangerous := range []string{
			"flushall", "flushdb", "swapdb", "keys", "shutdown", "debug", "config|set", "config|rewrite", "config|resetstat",
			"save", "bgsave", "bgrewriteaof", "script|flush", "function", "module", "monitor", "migrate", "rename", "sort", "acl",
		} {
			require.False(t, command[1] == dangerous || strings.HasPrefix(command[1], dangerous+"|"), "%s was sent", command[1])
		}
	}
}

// The user of Redis that the documentation gives can do what the program does,
// and is kept from the rest.
func TestDocumentation_TheRedisUser_CanDoAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	user := regexp.MustCompile(`(?m)^user sagabench .*$`).FindString(string(text))
	require.Contains(t, user, ">PASSWORD")
	rule := strings.Replace(strings.TrimPrefix(user, "user "), ">PASSWORD", ">"+password, 1)
	more := regexp.MustCompile("also `([^`]+)`").FindStringSubmatch(string(text)) // for bench run
	require.NotNil(t, more)
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"user":        rule + "\n" + strings.Replace(rule, "sagabench ", "bencher ", 1) + " " + more[1],
		"requirepass": "another-" + password,
	}})
	url := "redis://sagabench:" + password + "@" + server.Addr()

	p := newProgram(t, "SAGABENCH_REDIS_URL="+url)
	s := p.start("coordinator", "redis", "--listen", "127.0.0.1:0")
	p.load("redis", "--protocol", "dtm", "--target", s.url)
	status, _ := fetch(t, s.url+"/ui", "")
	require.Equal(t, http.StatusOK, status)
	s.stop()
	require.NotContains(t, s.err.String(), "NOPERM")
	require.Equal(t, exitOK, p.run("check", "redis").code)
	bencher := newProgram(t, "SAGABENCH_REDIS_URL="+strings.Replace(url, "sagabench:", "bencher:", 1)).run("run", "redis", "--duration", "300ms", "--warmup", "100ms")
	bencher.requireRan(t)

	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	for _, command := range [][]any{
		{"FLUSHALL"},
		{"FLUSHDB"},
		{"KEYS", "*"},
		{"CONFIG", "SET", "appendonly", "no"},
		{"SHUTDOWN"},
		{"ACL", "LIST"},
		{"GET", "other"},
		{"SET", "other", "1"},
		{"EVAL", "return redis.call('FLUSHALL')", "0"},
		{"REPLICAOF", "127.0.0.1", "1"},
		{"MODULE", "LIST"},
	} {
		require.ErrorContains(t, client.Do(t.Context(), command...).Err(), "permission", command)
	}
}

// A Redis behind TLS is spoken to in TLS, and only if its certificate is signed
// by who is trusted.
func TestCoordinator_SpeaksTLSWithRedis(t *testing.T) {
	t.Parallel()
	authority := testkit.NewAuthority(t)
	certificate, key := authority.Issue("server")
	handOver(t, filepath.Dir(key), "redis")
	port := freePort(t)
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"tls-port": strconv.Itoa(port), "tls-cert-file": certificate, "tls-key-file": key, "tls-auth-clients": "no",
	}})
	url := "rediss://:" + server.Password() + "@127.0.0.1:" + strconv.Itoa(port)

	stranger := newProgram(t).run("check", url)
	require.Equal(t, exitError, stranger.code)
	require.Contains(t, stranger.stderr, "certificate")

	p := newProgram(t, "SSL_CERT_FILE="+authority.CA)
	s := p.start("coordinator", url, "--listen", "127.0.0.1:0")
	p.load("--protocol", "dtm", "--target", s.url)
	s.stop()
	require.Equal(t, exitOK, p.run("check", url).code)
}

func freePort(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}
