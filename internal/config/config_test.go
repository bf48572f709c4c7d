package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
)

const (
	password = "topsecret"
	token    = "0123456789abcdef"
)

func options() Options {
	var o Options
	o.Redis.URL = secret.New("redis://127.0.0.1:6379")
	o.Coordinator.BranchAllow = []string{}
	return o
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestLoad_TheEnvironmentOverridesTheFile_WhichOverridesTheDefaults(t *testing.T) {
	t.Parallel()
	o, err := Load(options(), "", nil)
	require.NoError(t, err)
	require.Equal(t, options(), o)

	settings := file(t, "redis: {url: 'redis://:"+password+"@a'}\nserver: {token: "+token+"}\ncoordinator: {lease: 5s, branch_allow: [10.0.0.0/8]}\n")
	o, err = Load(options(), settings, nil)
	require.NoError(t, err)
	require.Equal(t, "redis://:"+password+"@a", o.Redis.URL.Reveal())
	require.Equal(t, token, o.Server.Token.Reveal())
	require.Equal(t, 5*time.Second, o.Coordinator.Lease)
	require.Equal(t, []string{"10.0.0.0/8"}, o.Coordinator.BranchAllow)

	o, err = Load(options(), settings, []string{
		"SAGABENCH_REDIS_URL=redis://b", "SAGABENCH_SERVER_TOKEN=" + token + "2", "SAGABENCH_COORDINATOR_BRANCH_ALLOW=a,b", "HOME=/",
	})
	require.NoError(t, err)
	require.Equal(t, "redis://b", o.Redis.URL.Reveal())
	require.Equal(t, token+"2", o.Server.Token.Reveal())
	require.Equal(t, []string{"a", "b"}, o.Coordinator.BranchAllow)
}

func TestLoad_ReadsTokensFromFiles(t *testing.T) {
	t.Parallel()
	o, err := Load(options(), "", []string{
		"SAGABENCH_SERVER_TOKEN_FILE=" + file(t, token+"\n"), "SAGABENCH_SERVER_ADMIN_TOKEN_FILE=" + file(t, "  "+token+"admin\r\n"),
	})
	require.NoError(t, err)
	require.Equal(t, secret.NewTokens(token), o.Tokens())
	require.Equal(t, secret.NewTokens(token+"admin"), o.AdminTokens())
}

// One token is replaced by another while clients still show the first.
func TestLoad_TakesSeveralTokens(t *testing.T) {
	t.Parallel()
	o, err := Load(options(), "", []string{
		"SAGABENCH_SERVER_TOKEN=" + token + "new " + token + "old", "SAGABENCH_SERVER_ADMIN_TOKEN_FILE=" + file(t, token+"a\n\n"+token+"b\r\n"),
	})
	require.NoError(t, err)
	require.Equal(t, secret.NewTokens(token+"new "+token+"old"), o.Tokens())
	require.Equal(t, token+"new", o.Tokens().First().Reveal())
	require.Equal(t, secret.NewTokens(token+"a "+token+"b"), o.AdminTokens())
}

func TestLoad_AnEmptyTokenIsNone(t *testing.T) {
	t.Parallel()
	o, err := Load(options(), "", []string{"SAGABENCH_SERVER_TOKEN=", "SAGABENCH_SERVER_ADMIN_TOKEN="})
	require.NoError(t, err)
	require.False(t, o.Server.Token.IsSet())
	require.False(t, o.Server.AdminToken.IsSet())
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
		_, err := Load(options(), settings, environ)
		require.ErrorContains(t, err, tt.says, name)
		require.NotContains(t, err.Error(), "topsecret", name)
	}
}

func TestOptions_PrintNoSecret(t *testing.T) {
	t.Parallel()
	o, err := Load(options(), "", []string{
		"SAGABENCH_REDIS_URL=redis://:" + password + "@a", "SAGABENCH_SERVER_TOKEN=" + token, "SAGABENCH_SERVER_ADMIN_TOKEN=" + token + "2",
		"SAGABENCH_MYSQL_URL=mysql://u:" + password + "@a", "SAGABENCH_POSTGRES_URL=postgres://u:" + password + "@a/b",
	})
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		printed := fmt.Sprintf(verb, o)
		require.NotContains(t, printed, password)
		require.NotContains(t, printed, token)
		require.Equal(t, 5, strings.Count(printed, "***"))
	}
}

// Kubernetes gives every pod variables of every Service of its namespace: of one
// named sagabench, or sagabench-something, they begin as our own do.
func TestLoad_IgnoresTheVariablesOfKubernetesServices(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"SAGABENCH", "SAGABENCH_REDIS", "SAGABENCH_SERVER"} {
		o, err := Load(options(), "", []string{
			service + "_SERVICE_HOST=10.96.0.12", service + "_SERVICE_PORT=36789", service + "_SERVICE_PORT_HTTP_API=36789",
			service + "_PORT=tcp://10.96.0.12:36789", service + "_PORT_36789_TCP=tcp://10.96.0.12:36789",
			service + "_PORT_36789_TCP_PROTO=tcp", service + "_PORT_36789_TCP_PORT=36789", service + "_PORT_36789_TCP_ADDR=10.96.0.12",
			service + "_PORT_53_UDP=udp://[fd00::a]:53", service + "_PORT_53_UDP_PROTO=udp", service + "_PORT_53_UDP_PORT=53", service + "_PORT_53_UDP_ADDR=fd00::a",
		})
		require.NoError(t, err)
		require.Equal(t, options(), o)
	}
	for _, entry := range []string{
		"SAGABENCH_PORT=8080", "SAGABENCH_SERVER_PORT=8080", "SAGABENCH_SERVICE_PORT=many", "SAGABENCH_SERVICE_HOSTS=10.96.0.12",
		"SAGABENCH_REDIS_PORT_TCP=tcp://10.96.0.12:1", "SAGABENCH_PORT_1_TCP_ADRR=10.96.0.12", "SAGABENCH_SERVICE_HOST=",
	} {
		_, err := Load(options(), "", []string{entry})
		require.ErrorContains(t, err, "unknown variable", entry)
	}
}

// A setting of such a name would be ignored in silence, where a Service has it too.
func TestOptions_NoneIsNamedAsKubernetesNamesThoseOfServices(t *testing.T) {
	t.Parallel()
	known := koanf.New(".")
	require.NoError(t, known.Load(structs.Provider(Options{}, "koanf"), nil))
	require.NotEmpty(t, known.Keys())
	for _, key := range known.Keys() {
		for _, value := range []string{"10.96.0.12", "36789", "tcp", "tcp://10.96.0.12:36789"} {
			require.False(t, ofService(Variable(key)+"="+value), key)
		}
	}
}
