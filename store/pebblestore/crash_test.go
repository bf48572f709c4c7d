package pebblestore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the child process is told.
const (
	childDir    = "PEBBLESTORE_CHILD_DIR"
	childWorker = "PEBBLESTORE_CHILD_WORKER"
)

// child writes sagas for ever, and prints each stage of each as it is
// acknowledged.
func child(dir, worker string) error {
	cfg := DefaultConfig()
	cfg.Dir, cfg.tune = dir, small
	s, err := Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	l := newLedger()
	var out sync.Mutex
	l.onAck = func(gid string, at stage) {
		out.Lock()
		defer out.Unlock()
		_, _ = fmt.Println("ack", gid, at)
	}
	var workers sync.WaitGroup
	for w := range 3 {
		workers.Go(func() { err = l.run(context.Background(), s, fmt.Sprintf("%s%d", worker, w), 1<<30) })
	}
	workers.Wait()
	return err
}

func startChild(t *testing.T, dir, worker string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childWorker+"="+worker)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

func TestOpen_AfterKill_FindsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	cfg.tune = small
	l := newLedger()
	for round := range 4 {
		cmd, out := startChild(t, cfg.Dir, string(rune('a'+round)))
		acks := 0
		for out.Scan() {
			var gid string
			var at stage
			_, err := fmt.Sscanf(out.Text(), "ack %s %d", &gid, &at)
			require.NoError(t, err, "the child says %q", out.Text())
			l.acked[gid], l.tried[gid] = at, ended
			if acks++; acks == 100+round*150 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "the child was killed")
		require.GreaterOrEqual(t, acks, 100+round*150)

		s, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		l.check(t, s)
		require.NoError(t, s.Close())
	}
}
