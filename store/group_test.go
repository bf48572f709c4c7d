package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGroups_JoinEqualOperationsOfAShard(t *testing.T) {
	transition := func(edit func(*Transition)) Change {
		tr := &Transition{Epoch: 1, From: StatusSubmitted, To: StatusSubmitted, Due: time.Second, Marks: []SetMark{{0, MarkSucceeded}}}
		edit(tr)
		return tr
	}
	different := []Change{
		&Create{Due: time.Second},
		&Create{Due: time.Minute},
		transition(func(*Transition) {}),
		transition(func(t *Transition) { t.Epoch = 2 }),
		transition(func(t *Transition) { t.From = StatusAborting }),
		transition(func(t *Transition) { t.To = StatusAborting }),
		transition(func(t *Transition) { t.Marks = nil }),
		transition(func(t *Transition) { t.Marks = []SetMark{{0, MarkFailed}} }),
		transition(func(t *Transition) { t.Due = time.Minute }),
		transition(func(t *Transition) { t.Release = true }),
		transition(func(t *Transition) { t.Note = "note" }),
	}
	const rounds, shards = 6, 2
	groups := NewGroups(rounds * len(different))
	want := make(map[string][]int)
	for round := range rounds {
		for n, c := range different {
			i, shard := round*len(different)+n, round%shards
			c = withGID(c, fmt.Sprint("g", i))
			groups = groups.Add(i, c, shard)
			key := fmt.Sprintf("%d of %T %d", shard, c, n)
			want[key] = append(want[key], i)
		}
	}
	require.Len(t, groups.All, shards*len(different))
	for _, g := range groups.All {
		indexes := groups.AppendIndexes(nil, g)
		require.Len(t, indexes, g.Len)
		n := indexes[0] % len(different)
		require.Equal(t, want[fmt.Sprintf("%d of %T %d", g.Shard, g.Change, n)], indexes)
		require.Equal(t, fmt.Sprint("g", indexes[0]), g.Change.Gid())
	}
}

func withGID(c Change, gid string) Change {
	switch c := c.(type) {
	case *Create:
		other := *c
		other.GID, other.Body = gid, []byte(gid)
		return &other
	case *Transition:
		other := *c
		other.GID = gid
		return &other
	}
	return c
}

func TestGroups_OfManyDifferentChanges_LookBackALimitedWay(t *testing.T) {
	const different = maxLookBack + 1
	groups := NewGroups(2 * different)
	for i := range 2 * different {
		groups = groups.Add(i, &Transition{GID: fmt.Sprint(i), Epoch: uint32(1 + i%different)}, 0)
	}
	require.Len(t, groups.All, 2*different)
}
