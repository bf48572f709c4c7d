// Package compose_test checks what matters in the compose file beside it: that nobody
// but this machine reaches a server without a password, and that a real server accepts
// its settings. It needs no Docker.
package compose_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// load reads the only service of the file, and the names of its volumes.
func load(t *testing.T) (service, volumes map[string]any) {
	t.Helper()
	text, err := os.ReadFile("redis.yml")
	require.NoError(t, err)
	var project map[string]any
	require.NoError(t, yaml.Unmarshal(text, &project))
	services := project["services"].(map[string]any)
	require.Len(t, services, 1)
	return services["redis"].(map[string]any), project["volumes"].(map[string]any)
}

// settings reads redis-server's command line: --name value.
func settings(t *testing.T, service map[string]any) map[string]string {
	t.Helper()
	command := service["command"].([]any)
	require.Equal(t, "redis-server", command[0])
	require.Zero(t, len(command[1:])%2, "one value per name")
	set := make(map[string]string)
	for i := 1; i < len(command); i += 2 {
		name, ok := strings.CutPrefix(command[i].(string), "--")
		require.True(t, ok, command[i])
		set[name] = command[i+1].(string)
	}
	return set
}

func TestRedis_IsWhatItsCommentsSay(t *testing.T) {
	t.Parallel()
	service, volumes := load(t)
	require.Regexp(t, regexp.MustCompile(`^redis:7\.\d+\.\d+$`), service["image"], "a pinned version")
	require.Equal(t, []any{"127.0.0.1:6379:6379"}, service["ports"], "there is no password")
	require.Equal(t, []any{"redis-data:/data"}, service["volumes"])
	require.Contains(t, volumes, "redis-data")
	require.Equal(t, "redis-cli ping | grep -q PONG", service["healthcheck"].(map[string]any)["test"])
	require.Equal(t, map[string]string{
		"appendonly":       "yes",
		"appendfsync":      "always",
		"save":             "",
		"maxmemory-policy": "noeviction",
	}, settings(t, service))
}

func TestRedis_SettingsAreAcceptedByAServer(t *testing.T) {
	t.Parallel()
	service, _ := load(t)
	want := settings(t, service)
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: want})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer client.Close()
	for name, value := range want {
		got, err := client.ConfigGet(t.Context(), name).Result()
		require.NoError(t, err)
		require.Equal(t, map[string]string{name: value}, got)
	}
}
