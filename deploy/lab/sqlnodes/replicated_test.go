//go:build unix

package sqlnodes_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/sqlnodes"
)

// childVariable makes this test binary start servers of the kind that it names, pause the
// replica, print the processes, and wait until it is killed.
const childVariable = "SAGABENCH_SQLNODES_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		servers, err := sqlnodes.Start(context.Background(), lab.Kinds[kind], lab.Config{})
		if err == nil {
			err = servers.Pause(context.Background())
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(servers.Nodes()[0].PID(), servers.Nodes()[1].PID())
		select {}
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // which reports each connection that a killed server cut
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

func forEach(t *testing.T, test func(t *testing.T, driver string, kind *lab.Kind)) {
	t.Helper()
	t.Parallel()
	for driver, kind := range map[string]*lab.Kind{"mysql": lab.MySQL, "pgx": lab.Postgres} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			test(t, driver, kind)
		})
	}
}

// connect opens a database that both kinds have.
func connect(t *testing.T, driver string, server *lab.Server) *sql.DB {
	t.Helper()
	database := ""
	if driver == "mysql" {
		database = "mysql"
	}
	db, err := sql.Open(driver, server.DSN(database))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func insert(ctx context.Context, db *sql.DB, n int) error {
	_, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO numbers VALUES (%d)", n))
	return err
}

func TestReplicated_WaitsForTheReplica_AlsoAfterRestarts_WhichHasAllWhenThePrimaryIsLost(t *testing.T) {
	forEach(t, func(t *testing.T, driver string, kind *lab.Kind) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		servers := labtest.StartReplicated(t, kind, lab.Config{})
		primary, replica := servers.Nodes()[0], servers.Nodes()[1]
		db := connect(t, driver, primary)
		_, err := db.ExecContext(ctx, "CREATE TABLE numbers (n INT)")
		require.NoError(t, err)

		require.NoError(t, servers.Pause(ctx))
		done := make(chan error, 1)
		go func() { done <- insert(ctx, db, 0) }()
		select {
		case err := <-done:
			t.Fatalf("acknowledged without the replica: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		servers.Resume()
		require.NoError(t, <-done)

		for i, server := range servers.Nodes() {
			require.NoError(t, server.Kill())
			require.NoError(t, server.Restart(ctx))
			db = connect(t, driver, primary)
			require.NoError(t, insert(ctx, db, -i), "the replica follows again")
		}

		const last = 200
		for n := 1; n <= last; n++ {
			require.NoError(t, insert(ctx, db, n))
		}
		require.NoError(t, primary.Destroy())
		require.NoDirExists(t, primary.Dir())
		require.NoError(t, servers.Promote(ctx))
		db = connect(t, driver, replica)
		var found int
		require.NoError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM numbers").Scan(&found))
		require.Equal(t, last+3, found)
		require.NoError(t, insert(ctx, db, -1), "it waits for nobody")
	})
}

func TestStart_RefusesWhatItCannotStart(t *testing.T) {
	t.Parallel()
	_, err := sqlnodes.Start(t.Context(), lab.Redis, lab.Config{})
	require.EqualError(t, err, "start a server with a replica: it is neither a MariaDB nor a PostgreSQL")
	_, err = sqlnodes.Start(t.Context(), lab.Postgres, lab.Config{Settings: map[string]string{"port": "5432"}})
	require.ErrorContains(t, err, "settings: port")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	_, err = sqlnodes.Start(t.Context(), lab.Postgres, lab.Config{Dir: dir, Settings: map[string]string{"max_wal_senders": "0"}})
	require.ErrorContains(t, err, "pg_basebackup", "it was started")
	require.ErrorContains(t, err, "max_wal_senders")
}

// A paused WAL receiver could not see that its server was killed.
func TestReplicated_LeavesNoOrphan_WhenItsOwnerIsKilled(t *testing.T) {
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), childVariable+"=postgres")
	out, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	pids := make([]int, 2)
	_, scanned := fmt.Sscan(line, &pids[0], &pids[1])
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[1])) // none outside Linux
	for _, path := range children {
		text, _ := os.ReadFile(path) // a thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	require.NoError(t, owner.Process.Kill())
	_ = owner.Wait() // it was killed
	require.NoError(t, err)
	require.NoError(t, scanned, line)
	for _, pid := range pids {
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, patience, 10*time.Millisecond)
	}
}
