package process

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// memoryShare is how much of the memory that this process may use is for Go: the
	// rest is for what is not in its heap, as Pebble's cache.
	memoryShare = 0.8
	// maxBallast is what a server allocates between two collections at least.
	maxBallast = 64 << 20
)

// BoundMemory keeps a server within the memory that its cgroup, or else the machine,
// allows, unless GOMEMLIMIT says another limit. It returns what undoes the part that
// costs something.
//
// Little of what is allocated lives longer than a saga, and collecting it less often
// saves a tenth of the CPU. GOGC 1000 does that too, but lets a heap of 100 MB grow to
// 1.1 GB. With GOGC 100 and a ballast a heap of 4 MB is collected every 68 MB, and one
// of 100 MB when it has grown by 164. The ballast is never touched, so it takes
// addresses and no memory.
func BoundMemory() (release func(), err error) {
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		return nil, err
	}
	if os.Getenv("GOGC") != "" {
		return func() {}, nil
	}
	ballast := make([]byte, min(maxBallast, limit/8))
	debug.SetGCPercent(100)
	return func() { runtime.KeepAlive(ballast) }, nil
}
