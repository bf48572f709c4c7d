package saga_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if arguments := os.Getenv(coordinatorVariable); arguments != "" {
		os.Exit(coordinatorMain(arguments))
	}
	goleak.VerifyTestMain(m)
}
