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

// childVariable makes this test binary start a server of the kind that it names, with
// the binary that follows the name, print its process and directory, and wait until a
// LeavesNoOrphan test kills it.
const childVariable = "SAGABENCH_LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); strings.HasPrefix(kind, "stranger ") {
		var name, addr, dir string
		var pid int
		fmt.Sscan(strings.TrimPrefix(kind, "stranger "), &name, &addr, &dir, &pid)
		fmt.Println(reach(name, addr, dir, pid))
		os.Exit(0)
	} else if kind != "" {
		name, binary, _ := strings.Cut(kind, " ")
		cfg := lab.Config{Binary: binary}
		if image, ok := strings.CutPrefix(binary, "image "); ok {
			cfg = lab.Config{Image: image}
		}
		server, err := lab.Kinds[name].Start(context.Background(), cfg)
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
