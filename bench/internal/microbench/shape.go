package microbench

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Shape says what the sagas of a call are like, and how calls are sent.
type Shape struct {
	Steps    int `json:"steps"`     // of each saga
	Payload  int `json:"payload"`   // bytes per step
	DueIndex int `json:"due_index"` // sagas in the due index besides those in flight
	Sagas    int `json:"sagas"`     // per call
	Pipeline int `json:"pipeline"`  // calls sent before their replies are read
	Conns    int `json:"conns"`     // connections that send at the same time
}

// connections is how many send at the same time: enough that the server always
// finds another call waiting.
const connections = 16

// base is the shape that the others differ from in one value.
var base = Shape{Steps: 2, Sagas: 1, Pipeline: 16, Conns: connections}

// The values that are measured.
var (
	pipelines = []int{1, 16, 50}
	batches   = []int{1, 16, 64} // sagas per call
	steps     = []int{1, 2, 10, 50}
	payloads  = []int{256, 4096}
	// detailedBatches are measured in more detail: with parts of the script left out,
	// and with sagas and due indexes of other sizes.
	detailedBatches = []int{1, 16}
)

// batchShapes are all batches at all pipelines.
func batchShapes() (all []Shape) {
	for _, sagas := range batches {
		for _, pipeline := range pipelines {
			all = append(all, base.with(sagas, pipeline))
		}
	}
	return all
}

// sizeShapes vary the steps, the payload or the due index.
func sizeShapes(sagas int, dueIndexes []int) (all []Shape) {
	bySteps, byPayload, byDueIndex := base.batch(sagas), base.batch(sagas), base.batch(sagas)
	for _, bySteps.Steps = range steps {
		all = append(all, bySteps)
	}
	for _, byPayload.Payload = range payloads {
		all = append(all, byPayload)
	}
	for _, byDueIndex.DueIndex = range dueIndexes {
		all = append(all, byDueIndex)
	}
	return all
}

// with returns the shape with another number of sagas and of calls per round trip.
func (s Shape) with(sagas, pipeline int) Shape {
	s.Sagas, s.Pipeline = sagas, pipeline
	return s
}

// batch returns the shape with another number of sagas per call.
func (s Shape) batch(sagas int) Shape { return s.with(sagas, s.Pipeline) }

// The due index of a busy server that keeps up holds only the sagas in flight. Several
// small indexes stand in for it, so that the new sagas of a window do not make it long.
const (
	smallIndexes = 16
	inFlight     = 64  // sagas in each, before a window
	maxAdded     = 256 // sagas that a window may add to each
)

// keyspace names the keys on the server. They are about as long as the store's.
type keyspace struct {
	prefix string
	sizes  []int // of the large due indexes
	// tag is the hash tag of all keys on a node of a cluster, which must have their slot.
	// Elsewhere it is empty, and each due index has its own, as in the store.
	tag string
}

// index names a due index for the sagas of call n: the only large one of a size, or one of
// the small ones.
func (k keyspace) index(dueIndex, n int) string {
	name := strconv.Itoa(n % smallIndexes)
	if dueIndex > 0 {
		name = string(rune('a'+slices.Index(k.sizes, dueIndex))) + "0"
	}
	if k.tag != "" {
		return k.prefix + ":{" + k.tag + "}" + name
	}
	return k.prefix + ":{" + name + "}"
}

// finished names finished saga n.
func (k keyspace) finished(n int) string {
	return k.index(0, n) + ":FINISHED" + strconv.Itoa(1e6+n)
}

// sagaKey names a saga in a due index.
func sagaKey(index string, number int) string { return index + ":" + gid(number) }

// gid has 26 characters, as many as one that the coordinator makes.
func gid(number int) string { return fmt.Sprintf("MICROBENCH%016d", number) }

// callKeys are the keys of one call. Its sagas share a due index.
type callKeys struct {
	index string
	sagas []string
}

// calls returns the keys of n calls on new sagas, numbered from first.
func (k keyspace) calls(n, first int, s Shape) []callKeys {
	all := make([]callKeys, n)
	for i := range all {
		all[i].index = k.index(s.DueIndex, i)
		for range s.Sagas {
			all[i].sagas = append(all[i].sagas, sagaKey(all[i].index, first))
			first++
		}
	}
	return all
}

// lease is the time from now at which a new or rescheduled saga is due.
const lease = time.Minute

// dueAt returns the score in a due index of a saga due after d.
func dueAt(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }
