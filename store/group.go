package store

import "slices"

// Groups sorts the changes of a batch into groups that a store can write with one
// statement, or one argument of a script. Its methods take and return it by value,
// like append, which keeps small batches off the heap.
type Groups struct {
	All []Group

	next []int // by index in the batch: the index of the next change in its group
}

// Group is changes of a batch that do the same to different sagas: transitions that
// are equal but for their GID, or creates with the same Due.
type Group struct {
	Change Change // the first of them
	Shard  int    // as passed to Add
	Len    int

	first, last int
}

// maxLookBack bounds the search for a group in a batch of many different changes.
const maxLookBack = 64

// NewGroups returns no groups yet, for a batch of n changes.
func NewGroups(n int) Groups {
	return Groups{All: make([]Group, 0, 8), next: make([]int, n)}
}

// Add returns g with change, which is number i in the batch, in the group of its
// operation and its shard. It tries the last 64 groups before it starts another one.
func (g Groups) Add(i int, change Change, shard int) Groups {
	for n := len(g.All) - 1; n >= 0 && n >= len(g.All)-maxLookBack; n-- {
		if group := &g.All[n]; group.Shard == shard && sameOperation(group.Change, change) {
			g.next[group.last] = i
			group.last = i
			group.Len++
			return g
		}
	}
	g.All = append(g.All, Group{Change: change, Shard: shard, Len: 1, first: i, last: i})
	return g
}

// AppendIndexes appends to numbers those that the changes of group have in the
// batch, ascending.
func (g Groups) AppendIndexes(numbers []int, group Group) []int {
	for i, n := group.first, group.Len; n > 0; i, n = g.next[i], n-1 {
		numbers = append(numbers, i)
	}
	return numbers
}

func sameOperation(a, b Change) bool {
	switch a := a.(type) {
	case *Create:
		b, ok := b.(*Create)
		return ok && a.Due == b.Due
	case *Transition:
		b, ok := b.(*Transition)
		return ok && a.Epoch == b.Epoch && a.Owner == b.Owner && a.From == b.From && a.To == b.To && slices.Equal(a.Marks, b.Marks) &&
			a.Due == b.Due && a.Release == b.Release && a.Note == b.Note
	default:
		return false
	}
}
