//go:build unix

package lab_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
)

// childVariable makes this test binary start a server of the kind that it names,
// with the binary that follows the name, tell where it is, and wait for the end
// that a LeavesNoOrphan test has in store for it.
const childVariable = "SAGABENCH_LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); strings.HasPrefix(kind, "stranger ") {
		var name, addr, dir string
		var pid int
		fmt.Sscan(strings.TrimPrefix(kind, "stranger "), &name, &addr, &dir, &pid)
		fmt.Println(reach(name, addr, dir, pid))
		os.Exit(0)
	} else if kind != "" {
		server, err := startKind(kind)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(server.PID(), server.Dir())
		select {}
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // which reports each connection that a killed server cut
	goleak.VerifyTestMain(m)
}

func startKind(kind string) (*lab.Server, error) {
	ctx := context.Background()
	kind, binary, _ := strings.Cut(kind, " ")
	switch kind {
	case "redis":
		return lab.StartRedis(ctx, lab.RedisConfig{Binary: binary})
	case "mysql":
		return lab.StartMySQL(ctx, lab.MySQLConfig{Binary: binary})
	case "postgres":
		return lab.StartPostgres(ctx, lab.PostgresConfig{Binary: binary})
	default:
		return nil, fmt.Errorf("no kind of server is called %q", kind)
	}
}
