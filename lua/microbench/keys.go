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
	Groups   float64 `json:"groups"`    // per call: how many due indexes they are in
	Pipeline float64 `json:"pipeline"`  // calls sent before their answers are read
	Conns    int     `json:"conns"`     // connections that send at the same time
	// Every is from one sending of a connection to its next; 0: as soon as it can.
	Every time.Duration `json:"every_ns,omitempty"`
}

// shards is how many due indexes sagas are spread over by default; a call that
// takes many sagas meets them all.
const shards = 4

// A server that is busy and not behind has only the sagas in flight in its due
// indexes, a few in each, and keeps those as short lists. Many such indexes stand
// in for one that sagas enter and leave all the time, so that a window of sagas
// that all enter does not make it long.
const (
	shortIndexes = 256
	inFlight     = 16 // sagas in each, before a window
	most         = 16 // that a window may add to each: a list has at most 128
)

// keys names what is on the server. Its names are about as long as the store's.
type keys struct {
	prefix string
	sizes  []int // of the due indexes beside the short ones
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
		return shortIndexes
	}
	return shards
}

// saga is the key of a saga that is in a due index.
func (k keys) saga(index string, number int) string {
	return index + ":" + gid(number)
}

// gid is as long as one that the coordinator gives, 26 characters.
func gid(number int) string { return fmt.Sprintf("MICROBENCH%016d", number) }

// group is sagas of one call that share a due index.
type group struct {
	index string
	sagas []string
}

// plan says which sagas each call is about: new ones, numbered from first on.
func (k keys) plan(n, first int, s Shape) [][]group {
	calls := make([][]group, n)
	next := 0 // index
	for i := range calls {
		sagas := share(i, s.Sagas)
		groups := min(sagas, share(i, s.Groups))
		for g := range groups {
			one := group{index: k.index(s.DueIndex, next%indexes(s.DueIndex))}
			next++
			for range sagas*(g+1)/groups - sagas*g/groups {
				one.sagas = append(one.sagas, k.saga(one.index, first))
				first++
			}
			calls[i] = append(calls[i], one)
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
