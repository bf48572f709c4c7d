package hosts

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/netlab"
)

// One app host cannot reach one node of a Redis Cluster. That holds up the sagas of that
// node, on that host only; nothing is lost.
func TestANodeCutOffFromOneAppHost_HoldsUpItsSagasThere(t *testing.T) {
	t.Parallel()
	nodes := []string{"node1", "node2", "node3"}
	lab := newHosts(t, netlab.Config{Hosts: append(nodes, apps...)})
	create := []string{"--cluster-yes", "--cluster", "create"}
	for _, node := range nodes {
		_, err := startRedis(soon(t), lab.Host(node), "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--dir", t.TempDir())
		require.NoError(t, err)
		create = append(create, net.JoinHostPort(lab.Host(node).Addr().String(), "6379"))
	}
	output, code := run(t, lab.Host("node1"), exec.Command("redis-cli", create...))
	require.Zero(t, code, output)
	for _, node := range nodes { // redis-cli waits for the first one only
		require.Eventually(t, func() bool {
			info, _ := run(t, lab.Host(node), exec.Command("redis-cli", "cluster", "info"))
			return strings.Contains(info, "cluster_state:ok")
		}, time.Minute, 10*time.Millisecond)
	}
	redisURL := fmt.Sprintf("redis://%s?addr=%s", create[3], create[5])
	dir := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := bench(t, args...)
		cmd.Dir, cmd.Env = dir, append(cmd.Env, "SAGABENCH_REDIS_TIMEOUT=500ms", "SAGABENCH_REDIS_CONNS=64")
		return cmd
	}
	var servers []*program
	for _, app := range apps {
		server, err := start(soon(t), lab.Host(app), command(redisURL, "--listen", "127.0.0.1:8080"), "serving on ")
		require.NoError(t, err)
		servers = append(servers, server)
	}
	cut, code := run(t, lab.Host("app1"), exec.Command("ip", "route", "add", "unreachable", lab.Host("node2").Addr().String()))
	require.Zero(t, code, cut)

	var loads []*program
	for _, app := range apps {
		p, err := start(soon(t), lab.Host(app), command("load", "--target", "http://127.0.0.1:8080", "--rate", "60/s",
			"--duration", "3s", "--warmup", "100ms", "--out", app), "")
		require.NoError(t, err)
		loads = append(loads, p)
	}
	for _, p := range loads {
		<-p.ended
		require.Contains(t, []int{0, 2}, p.cmd.ProcessState.ExitCode(), "a result was written: %s", &p.log)
	}
	unaffected, affected := read(t, filepath.Join(dir, "app2")), read(t, filepath.Join(dir, "app1"))
	require.Zero(t, unaffected.Load.Errors)
	require.Positive(t, affected.Load.Errors)
	require.Less(t, affected.Load.Errors, affected.Load.Requests*2/3, "two of three nodes can be reached")
	require.Contains(t, servers[0].log.String(), create[4], "the log names the node")
	require.NotContains(t, servers[1].log.String(), create[4])
	ready, code := run(t, lab.Host("app1"), exec.Command("curl", "-sf", "http://127.0.0.1:8080/readyz"))
	require.Zero(t, code, ready)

	_, code = run(t, lab.Host("app1"), exec.Command("ip", "route", "del", "unreachable", lab.Host("node2").Addr().String()))
	require.Zero(t, code)
	check, code := run(t, lab.Host("app2"), command("check", redisURL))
	require.Zero(t, code, check)
}
