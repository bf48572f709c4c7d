// Package compose_test checks the compose files beside it with the library of
// the compose specification, and their settings on a real server: it needs no
// Docker.
package compose_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
)

func load(t *testing.T, file string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithConsistency(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

// settings reads redis-server's command line: --name value.
func settings(t *testing.T, command []string) map[string]string {
	t.Helper()
	require.Equal(t, "redis-server", command[0])
	require.Zero(t, len(command[1:])%2, "one value per name")
	set := make(map[string]string)
	for i := 1; i < len(command); i += 2 {
		name, ok := strings.CutPrefix(command[i], "--")
		require.True(t, ok, command[i])
		set[name] = command[i+1]
	}
	return set
}

func TestRedis_IsWhatItsCommentsSay(t *testing.T) {
	t.Parallel()
	project := load(t, "redis.yml")
	service, err := project.GetService("redis")
	require.NoError(t, err)
	require.Len(t, project.Services, 1)

	require.Regexp(t, regexp.MustCompile(`^redis:7\.\d+\.\d+$`), service.Image, "a pinned version")

	require.Len(t, service.Ports, 1)
	require.Equal(t, "127.0.0.1", service.Ports[0].HostIP, "there is no password")
	require.Equal(t, uint32(6379), service.Ports[0].Target)

	require.Len(t, service.Volumes, 1)
	require.Equal(t, types.VolumeTypeVolume, service.Volumes[0].Type)
	require.Equal(t, "/data", service.Volumes[0].Target)
	require.Contains(t, project.Volumes, service.Volumes[0].Source)

	require.NotNil(t, service.HealthCheck)
	require.False(t, service.HealthCheck.Disable)
	require.Equal(t, types.HealthCheckTest{"CMD-SHELL", "redis-cli ping | grep -q PONG"}, service.HealthCheck.Test)

	require.Equal(t, map[string]string{
		"appendonly":       "yes",
		"appendfsync":      "always",
		"save":             "",
		"maxmemory-policy": "noeviction",
	}, settings(t, service.Command))
}

func TestRedis_SettingsAreTakenByAServer(t *testing.T) {
	t.Parallel()
	service, err := load(t, "redis.yml").GetService("redis")
	require.NoError(t, err)
	want := settings(t, service.Command)

	server := lab.TestRedis(t, lab.RedisConfig{Settings: want})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer client.Close()
	for name, value := range want {
		got, err := client.ConfigGet(t.Context(), name).Result()
		require.NoError(t, err)
		require.Equal(t, map[string]string{name: value}, got)
	}
}
