package saga_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"sagabench/deploy/lab/labtest"
)

// shared are the servers of tests that break none.
var shared labtest.SharedRedis

func TestMain(m *testing.M) {
	if arguments := os.Getenv(coordinatorVariable); arguments != "" {
		os.Exit(coordinatorMain(arguments))
	}
	_ = flag.Set("test.parallel", "8") // whatever the cores: mostly it waits for leases and deadlines
	shared.M = m
	goleak.VerifyTestMain(&shared)
}
