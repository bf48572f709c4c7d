package microbench

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Shape is what a measured call is about, and how it is sent. Numbers that are
// averages need not be whole.
type Shape struct {
	Steps    int     `json:"steps"`     // of each saga
	Payload  int     `json:"payload"`   // bytes per step
	DueIndex int     `json:"due_index"` // sagas that are due beside those in flight
	Sagas    float64 `json:"sagas"`     // per call
	Pipeline float64 `json:"pipeline"`  // calls sent before their answers are read
	Conns    int     `json:"conns"`     // connections that send at the same time
	// Every is from one sending of a connection to its next; 0: as soon as it can.
	Every time.Duration `json:"every_ns,omitempty"`
}

// A server that is busy and not behind has only the sagas in flight in its due
// index. A few such indexes stand in for one that sagas enter and leave all the
// time, so that a window of sagas that all enter does not make it long.
const (
	smallIndexes = 16
	inFlight     = 64  // sagas in each, before a window
	most         = 256 // that a window may add to each
)

// keys names what is on the server. Its names are about as long as the store's.
type keys struct {
	prefix string
	sizes  []int // of the due indexes beside the small ones
}

// index is the n-th due index of those that together hold so many sagas.
func (k keys) index(dueIndex, n int) string {
	tag := strconv.Itoa(n)
	if dueIndex > 0 {
		tag = string(rune('a'+slices.Index(k.sizes, dueIndex))) + tag
	}
	return k.prefix + ":{" + tag + "}"
}

func indexes(dueIndex int) int {
	if dueIndex == 0 {
		return smallIndexes
	}
	return 1
}

// saga is the key of a saga that is in a due index.
func (k keys) saga(index string, number int) string {
	return index + ":" + gid(number)
}

// gid is as long as one that the coordinator gives, 26 characters.
func gid(number int) string { return fmt.Sprintf("MICROBENCH%016d", number) }

// group is the sagas of one call. They share a due index.
type group struct {
	index string
	sagas []string
}

// plan says which sagas each call is about: new ones, numbered from first on.
func (k keys) plan(n, first int, s Shape) []group {
	calls := make([]group, n)
	for i := range calls {
		calls[i].index = k.index(s.DueIndex, i%indexes(s.DueIndex))
		for range share(i, s.Sagas) {
			calls[i].sagas = append(calls[i].sagas, k.saga(calls[i].index, first))
			first++
		}
	}
	return calls
}

// lease is when a saga that is saved or put into a due index is due, from now.
const lease = time.Minute

// due is a score in a due index.
func due(from time.Duration) string {
	return strconv.FormatInt(time.Now().Add(from).UnixMilli(), 10)
}
