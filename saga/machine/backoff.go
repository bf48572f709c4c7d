package machine

import (
	"hash/fnv"
	"time"

	"sagabench/store"
)

// Backoff sets the pauses before a branch that gives no answer is called again.
type Backoff struct {
	First time.Duration // before the first retry; doubled before each further retry
	Max   time.Duration // where doubling ends; First, if that is more
	Limit int           // retries of an action without an answer, after which the saga is aborted; 0: no limit
}

// Pause returns the time before retry number tries, from 1. It is never shorter than
// doubling gives, and up to half longer. The extra depends on the saga and the branch, so
// that sagas that were deferred together are not resumed together.
func (b Backoff) Pause(gid string, branch store.Branch, tries int) time.Duration {
	d := b.First
	for range tries - 1 {
		if d >= b.Max {
			break
		}
		d *= 2
	}
	d = min(d, max(b.Max, b.First))
	return max(d+time.Duration(jitter(gid, branch, tries)*float64(d)/2), time.Millisecond)
}

// jitter returns a pseudorandom number from 0 to 1 that depends on the arguments alone.
func jitter(gid string, branch store.Branch, tries int) float64 {
	h := fnv.New64a()
	h.Write([]byte(gid))
	// The finalizer of SplitMix64: every bit of the sum decides every bit of x.
	x := h.Sum64() + uint64(branch)<<32 + uint64(tries)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
