package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
)

const (
	password = "topsecret"
	token    = "0123456789abcdef"
)

// options are settings of each kind.
type options struct {
	RedisURL    secret.Text
	Lease       time.Duration
	BranchAllow []string
	MaxConns    int
	Pprof       bool
	Fail        float64
	Prefix      string
	Token       secret.Text
	TokenFile   string
	AdminToken  secret.Text
	AdminFile   string
}

func defaults() options {
	return options{RedisURL: secret.New("redis://127.0.0.1:6379"), BranchAllow: []string{}, Lease: time.Minute}
}

func load(file string, environ []string) (options, error) {
	o := defaults()
	err := Settings{
		"redis.url": &o.RedisURL, "redis.prefix": &o.Prefix,
		"coordinator.lease": &o.Lease, "coordinator.branch_allow": &o.BranchAllow,
		"server.max_conns": &o.MaxConns, "server.pprof": &o.Pprof, "scenario.fail": &o.Fail,
		"server.token": &o.Token, "server.token_file": &o.TokenFile,
		"server.admin_token": &o.AdminToken, "server.admin_token_file": &o.AdminFile,
	}.Load(file, environ)
	if err == nil {
		err = CheckTokensDiffer(secret.NewTokens(o.Token.Reveal()), secret.NewTokens(o.AdminToken.Reveal()))
	}
	return o, err
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestLoad_TheEnvironmentOverridesTheFile_WhichOverridesTheDefaults(t *testing.T) {
	t.Parallel()
	o, err := load("", nil)
	require.NoError(t, err)
	require.Equal(t, defaults(), o)

	settings := file(t, "redis: {url: 'redis://:"+password+"@a'}\nserver: {token: "+token+"}\ncoordinator: {lease: 5s, branch_allow: [10.0.0.0/8]}\n")
	o, err = load(settings, nil)
	require.NoError(t, err)
	require.Equal(t, "redis://:"+password+"@a", o.RedisURL.Reveal())
	require.Equal(t, token, o.Token.Reveal())
	require.Equal(t, 5*time.Second, o.Lease)
	require.Equal(t, []string{"10.0.0.0/8"}, o.BranchAllow)

	o, err = load(settings, []string{
		"SAGABENCH_REDIS_URL=redis://b", "SAGABENCH_SERVER_TOKEN=" + token + "2", "SAGABENCH_COORDINATOR_BRANCH_ALLOW=a,b", "HOME=/",
	})
	require.NoError(t, err)
	require.Equal(t, "redis://b", o.RedisURL.Reveal())
	require.Equal(t, token+"2", o.Token.Reveal())
	require.Equal(t, []string{"a", "b"}, o.BranchAllow)
}

func TestLoad_ReadsTokensFromFiles(t *testing.T) {
	t.Parallel()
	o, err := load("", []string{
		"SAGABENCH_SERVER_TOKEN_FILE=" + file(t, token+"\n"), "SAGABENCH_SERVER_ADMIN_TOKEN_FILE=" + file(t, "  "+token+"admin\r\n"),
	})
	require.NoError(t, err)
	require.Equal(t, secret.NewTokens(token), secret.NewTokens(o.Token.Reveal()))
	require.Equal(t, secret.NewTokens(token+"admin"), secret.NewTokens(o.AdminToken.Reveal()))
}

// One token is replaced by another while clients still show the first.
func TestLoad_TakesSeveralTokens(t *testing.T) {
	t.Parallel()
	o, err := load("", []string{
		"SAGABENCH_SERVER_TOKEN=" + token + "new " + token + "old", "SAGABENCH_SERVER_ADMIN_TOKEN_FILE=" + file(t, token+"a\n\n"+token+"b\r\n"),
	})
	require.NoError(t, err)
	require.Equal(t, secret.NewTokens(token+"new "+token+"old"), secret.NewTokens(o.Token.Reveal()))
	require.Equal(t, token+"new", secret.NewTokens(o.Token.Reveal()).First().Reveal())
	require.Equal(t, secret.NewTokens(token+"a "+token+"b"), secret.NewTokens(o.AdminToken.Reveal()))
}

func TestLoad_AnEmptyTokenIsNone(t *testing.T) {
	t.Parallel()
	o, err := load("", []string{"SAGABENCH_SERVER_TOKEN=", "SAGABENCH_SERVER_ADMIN_TOKEN="})
	require.NoError(t, err)
	require.False(t, o.Token.IsSet())
	require.False(t, o.AdminToken.IsSet())
}

func TestLoad_SaysWhatIsWrong_ButNoSecret(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ settings, environ, says string }{
		"short token":          {environ: "SERVER_TOKEN=topsecret", says: "server.token: a token of 9 characters, must be at least 16"},
		"short admin token":    {environ: "SERVER_ADMIN_TOKEN=topsecret", says: "server.admin_token: a token of 9 characters"},
		"second one is short":  {environ: "SERVER_TOKEN=topsecret-topsecret topsecret", says: "server.token: a token of 9 characters"},
		"token with an umlaut": {settings: `server: {token: "topsecret-topsecret-\u00fc"}`, says: "visible ASCII"},
		"token with a bell":    {settings: `server: {token: "topsecret-topsecret\a"}`, says: "visible ASCII"},
		"one token for both":   {settings: "server: {token: topsecret-topsecret2 topsecret-topsecret, admin_token: topsecret-topsecret}", says: "server.admin_token: is a server.token too"},
		"token of a number":    {settings: "server: {token: 1234567890123456}", says: "write it in quotes"},
		"token of a list":      {settings: "server: {token: [topsecret]}", says: "write it in quotes"},
		"no token file":        {environ: "SERVER_TOKEN_FILE=/nowhere", says: "server.token_file: open /nowhere"},
		"empty token file":     {environ: "SERVER_TOKEN_FILE=" + file(t, "\n"), says: "holds no token"},
		"token and its file":   {settings: "server: {token: topsecret-topsecret, token_file: x}", says: "keep one"},
		"a number, and words":  {environ: "SERVER_MAX_CONNS=many", says: "server.max_conns"},
		"unknown key":          {settings: "server: {public: true}", says: `unknown key "server.public"`},
		"unknown variable":     {environ: "SERVER_TOKENS=topsecret", says: "unknown variable SAGABENCH_SERVER_TOKENS"},
	} {
		var environ []string
		if tt.environ != "" {
			environ = []string{EnvPrefix + tt.environ}
		}
		settings := ""
		if tt.settings != "" {
			settings = file(t, tt.settings)
		}
		_, err := load(settings, environ)
		require.ErrorContains(t, err, tt.says, name)
		require.NotContains(t, err.Error(), "topsecret", name)
	}
}

func TestLoad_ReadsEachKind(t *testing.T) {
	t.Parallel()
	o, err := load(file(t, "redis: {prefix: 12}\ncoordinator:\nserver: {max_conns: 0x10, pprof: true}\nscenario: {fail: 0.25}\n"), []string{
		"SAGABENCH_COORDINATOR_LEASE=90s", "SAGABENCH_COORDINATOR_BRANCH_ALLOW=",
	})
	require.NoError(t, err)
	want := defaults()
	want.Prefix, want.MaxConns, want.Pprof, want.Fail, want.Lease = "12", 16, true, 0.25, 90*time.Second
	require.Equal(t, want, o)
	o, err = load(file(t, "coordinator: {lease: 0}\nredis: {prefix: null}\n"), nil)
	require.NoError(t, err)
	require.Zero(t, o.Lease)
	o, err = load(file(t, "server: {max_conns: 1e6}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, 1_000_000, o.MaxConns)
	_, err = load("", []string{"SAGABENCH_COORDINATOR_LEASE="})
	require.ErrorContains(t, err, "coordinator.lease: is empty")
	for text, says := range map[string]string{
		"coordinator: {lease: 5}":                       "coordinator.lease: 5 has no unit: write 5s for seconds",
		"coordinator: {lease: [5s]}":                    "must be one value",
		"coordinator: {lease: ''}":                      "coordinator.lease: is empty",
		"coordinator: {branch_allow: {a: b}}":           "must be a list",
		"redis: {prefix: {a: b}}":                       "must be one value",
		"server: {pprof: maybe}":                        `server.pprof: "maybe", must be true or false`,
		"server: {max_conns: 1}\nserver: {pprof: true}": "already defined",
		"sever:":   `unknown key "sever"`,
		"redis: 5": `unknown key "redis"`,
		"- redis":  "cannot unmarshal",
	} {
		_, err := load(file(t, text), nil)
		require.ErrorContains(t, err, says, text)
	}
}

// Kubernetes gives every pod variables of every Service of its namespace: of one
// named sagabench, or sagabench-something, they begin as our own do.
func TestLoad_IgnoresTheVariablesOfKubernetesServices(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"SAGABENCH", "SAGABENCH_REDIS", "SAGABENCH_SERVER"} {
		o, err := load("", []string{
			service + "_SERVICE_HOST=10.96.0.12", service + "_SERVICE_PORT=36789", service + "_SERVICE_PORT_HTTP_API=36789",
			service + "_PORT=tcp://10.96.0.12:36789", service + "_PORT_36789_TCP=tcp://10.96.0.12:36789",
			service + "_PORT_36789_TCP_PROTO=tcp", service + "_PORT_36789_TCP_PORT=36789", service + "_PORT_36789_TCP_ADDR=10.96.0.12",
			service + "_PORT_53_UDP=udp://[fd00::a]:53", service + "_PORT_53_UDP_PROTO=udp", service + "_PORT_53_UDP_PORT=53", service + "_PORT_53_UDP_ADDR=fd00::a",
		})
		require.NoError(t, err)
		require.Equal(t, defaults(), o)
	}
	for _, entry := range []string{
		"SAGABENCH_PORT=8080", "SAGABENCH_SERVER_PORT=8080", "SAGABENCH_SERVICE_PORT=many", "SAGABENCH_SERVICE_HOSTS=10.96.0.12",
		"SAGABENCH_REDIS_PORT_TCP=tcp://10.96.0.12:1", "SAGABENCH_PORT_1_TCP_ADRR=10.96.0.12", "SAGABENCH_SERVICE_HOST=",
	} {
		_, err := load("", []string{entry})
		require.ErrorContains(t, err, "unknown variable", entry)
	}
}
