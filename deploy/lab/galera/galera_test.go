package galera_test

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/galera"
	"sagabench/deploy/lab/labtest"
)

var up = flag.Bool("up", false, "keep a cluster up until Ctrl-C, and print its URLs")

// With -v -timeout 0 -up, it is for commands of your own.
func TestUp(t *testing.T) {
	if !*up {
		return
	}
	cluster := labtest.StartGalera(t, galera.Config{Nodes: 3})
	for _, node := range cluster.Nodes() {
		t.Logf("process %d: %s", node.PID(), node.URL())
	}
	interrupted, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-interrupted.Done()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStart_ReplicatesToNodesThatWereAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster := labtest.StartGalera(t, galera.Config{Nodes: 3, SuspectTimeout: 2 * time.Second})
	var dbs []*sql.DB
	for _, node := range cluster.Nodes() {
		db, err := sql.Open("mysql", node.DSN("mysql")+"?wsrep_sync_wait=1")
		require.NoError(t, err)
		defer db.Close()
		dbs = append(dbs, db)
	}
	exec := func(i int, text string) {
		t.Helper()
		_, err := dbs[i].ExecContext(ctx, text)
		require.NoError(t, err, text)
	}
	requireRows := func(i, want int) {
		t.Helper()
		var n int
		require.NoError(t, dbs[i].QueryRowContext(ctx, "SELECT COUNT(*) FROM things.thing").Scan(&n))
		require.Equal(t, want, n, "of node %d", i)
	}
	exec(0, "CREATE DATABASE things")
	exec(1, "CREATE TABLE things.thing (n INT PRIMARY KEY)")
	exec(2, "INSERT INTO things.thing VALUES (1)")
	for i := range dbs {
		requireRows(i, 1)
	}

	first, second := cluster.Nodes()[0], cluster.Nodes()[1]
	require.NoError(t, first.Kill())
	require.NoError(t, cluster.WaitReady(ctx))
	exec(1, "INSERT INTO things.thing VALUES (2)")
	require.NoError(t, first.Restart(ctx), "it joins, although it made the cluster")
	require.NoError(t, cluster.WaitReady(ctx))
	requireRows(0, 2)

	require.NoError(t, second.Signal(syscall.SIGSTOP))
	exec(0, "INSERT INTO things.thing VALUES (3)")
	require.NoError(t, second.Signal(syscall.SIGCONT))
	// The others may leave it out only now, as they have not heard of it for a while. Until it
	// is back its answers are errors.
	require.Eventually(t, func() bool {
		var n int
		err := dbs[1].QueryRowContext(ctx, "SELECT COUNT(*) FROM things.thing").Scan(&n)
		return err == nil && n == 3
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, cluster.Stop())
	for _, node := range cluster.Nodes() {
		require.NoDirExists(t, node.Dir())
	}
}

func TestStart_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	_, err := galera.Start(t.Context(), galera.Config{})
	require.EqualError(t, err, "start a Galera cluster: 0 nodes, must be 1 to 16")
	_, err = galera.Start(t.Context(), galera.Config{Nodes: 2, Node: lab.Config{Settings: map[string]string{"no_such_setting": "1"}}})
	require.ErrorContains(t, err, "no_such_setting")
}
