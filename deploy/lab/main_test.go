package lab_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"sagabench/deploy/lab"
)

// childVariable makes this test binary start a server, tell where it is, and
// wait for the end that TestStartRedis_LeavesNoOrphan has in store for it.
const childVariable = "SAGABENCH_LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		server, err := lab.StartRedis(context.Background(), lab.RedisConfig{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(server.PID(), server.Dir())
		select {}
	}
	goleak.VerifyTestMain(m)
}
