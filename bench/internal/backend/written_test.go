package backend

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/sample"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/filesystem"
)

func TestWrittenBy_IncludesChildrenThatHaveEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if filesystem.InMemory(filesystem.Of(dir)) {
		t.Skip("there is no disk to write to")
	}
	// dd is the shell's child, and has ended when the shell says so.
	shell := exec.CommandContext(t.Context(), "sh", "-c", "dd if=/dev/zero of=file bs=1M count=3 2>/dev/null; echo done; read line")
	shell.Dir = dir
	stdin, err := shell.StdinPipe()
	require.NoError(t, err)
	stdout, err := shell.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	written, err := serverProcess{pid: shell.Process.Pid}.sum(t.Context(), writtenBy)
	require.NoError(t, err)
	require.InDelta(t, 3<<20, *written, 256<<10)
	require.NoError(t, stdin.Close())
	_ = shell.Wait() // read has found the end
}

func TestUsage_RedisWritesItsLog(t *testing.T) {
	t.Parallel()
	const sets, size = 200, 1000
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "everysec"}})
	opt, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	client := redis.NewClient(opt)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	load := func() {
		for i := range sets {
			require.NoError(t, client.Set(t.Context(), fmt.Sprintf("key%04d", i), strings.Repeat("x", size), 0).Err())
		}
	}
	elsewhere := redisAt(server)
	here := elsewhere
	here.PIDs = []int{server.PID()}

	s := begin(t, config(elsewhere))
	load()
	u := end(t, s)
	require.InEpsilon(t, sets*size, *u.Total.StoreBytesWritten, 0.1)
	require.InDelta(t, *u.Total.StoreBytesWritten, *u.Resources.StoreDebtBytes, 1)
	require.Greater(t, *u.Resources.StoreRSSBytes, 1e6)
	require.Greater(t, *u.Resources.StoreUsedBytes, 5e5)
	require.Zero(t, *u.Resources.StoreChildCores)
	require.NotNil(t, u.Resources.StoreMainCore)

	s = begin(t, config(here))
	load()
	u = end(t, s)
	if !filesystem.InMemory(filesystem.Of(server.Dir())) {
		require.InEpsilon(t, sets*size, *u.Total.StoreBytesWritten, 0.5, "in whole pages")
	}

	s = begin(t, config(elsewhere))
	require.NoError(t, client.BgRewriteAOF(t.Context()).Err())
	u = finish(t, s)
	require.Nil(t, u.Total.StoreBytesWritten)
	require.Contains(t, strings.Join(u.Failures, "\n"), "wrote its log anew")
}

func TestNotTheLog_SaysWhenTheLogIsNotAllThatIsWritten(t *testing.T) {
	t.Parallel()
	require.NoError(t, notTheLog("0 0", "0 0", "everysec"))
	require.NoError(t, notTheLog("0 0", "0 0", "no"))
	require.ErrorContains(t, notTheLog("0 0", "1 0", "everysec"), "wrote its log anew")
	require.ErrorContains(t, notTheLog("0 0", "0 0", "always"), "last page")
	require.ErrorContains(t, notTheLog("0 0", "0 0", ""), `appendfsync ""`, "the server does not say")
}

func TestAddTo_ALimitBoundsWhatTheProcessesWrote(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		written, most *float64
		want          float64
	}{
		"no limit":       {value(5000), nil, 5000},
		"below it":       {value(5000), value(8000), 5000},
		"folios counted": {value(500_000), value(8000), 8000},
	} {
		s := sampler{
			before: &counters{values: map[string]float64{}, written: value(0), mostWritten: value(0)},
			after:  &counters{values: map[string]float64{}, written: c.written, mostWritten: c.most},
		}
		var u sample.Usage
		s.AddTo(&u)
		require.Empty(t, u.Failures, name)
		require.InDelta(t, c.want, *u.Total.StoreBytesWritten, 0, name)
	}
}
