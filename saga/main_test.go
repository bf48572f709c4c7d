package saga_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if arguments := os.Getenv(coordinatorVariable); arguments != "" {
		os.Exit(coordinatorMain(arguments))
	}
	_ = flag.Set("test.parallel", "8") // whatever the cores: mostly it waits for leases and deadlines
	goleak.VerifyTestMain(m)
}
