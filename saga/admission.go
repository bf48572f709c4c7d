package saga

import (
	"sync/atomic"

	"sagabench/store"
)

// admission limits the submitted sagas under way, by weight. Those of a partition of the
// store may weigh perFree times what is left: a server of the store that does not answer
// keeps its sagas under way for seconds, and must leave room for those of the others.
type admission struct {
	most        int64
	all         atomic.Int64
	partitions  []admitted // of a store that has several
	partitionOf func(gid string) int
	releaseOne  func() // takes 1 off; made once, not for each saga
}

// admitted is what is under way of a partition.
type admitted struct {
	weight     atomic.Int64
	releaseOne func()
}

func newAdmission(most int, s store.Store) *admission {
	a := &admission{most: int64(most)}
	a.releaseOne = func() { a.all.Add(-1) }
	if p, ok := s.(store.Partitioned); ok && p.Partitions() > 1 {
		a.partitions, a.partitionOf = make([]admitted, p.Partitions()), p.PartitionOf
		for i := range a.partitions {
			of := &a.partitions[i]
			of.releaseOne = func() { of.weight.Add(-1); a.all.Add(-1) }
		}
	}
	return a
}

// admit returns a function that makes room again, or nil if there is no room.
func (a *admission) admit(gid string, weight int64) (release func()) {
	all := a.all.Add(weight)
	release, room := a.releaseOne, all <= a.most
	if a.partitions == nil && weight > 1 {
		release = func() { a.all.Add(-weight) }
	}
	if a.partitions != nil {
		of := &a.partitions[a.partitionOf(gid)]
		release = of.releaseOne
		if weight > 1 {
			release = func() { of.weight.Add(-weight); a.all.Add(-weight) }
		}
		// The largest saga is admitted when nothing else of its partition is under way.
		mine := of.weight.Add(weight)
		room = room && (mine == weight || mine <= perFree*(a.most-all))
	}
	if !room {
		release()
		return nil
	}
	return release
}
