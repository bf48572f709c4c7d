package saga

import (
	"hash/fnv"
	"time"

	"sagabench/store"
)

// Backoff says how long a branch that gives no answer is left alone.
type Backoff struct {
	First time.Duration // before the first retry; doubled before each further one
	Max   time.Duration // where doubling ends; First, if that is more
	Limit int           // retries of an action without an answer, after which the saga is aborted; 0: no limit
}

// pause is the time before retry number tries, from 1. It is what doubling gives,
// which a submitter may rely on, and up to half as much again: how much depends on
// the saga and the branch, so that sagas held up together do not come back together.
func (b Backoff) pause(gid string, branch store.Branch, tries int) time.Duration {
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

// jitter is a number from 0 to 1 that looks random, and is the same for the same
// arguments.
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
