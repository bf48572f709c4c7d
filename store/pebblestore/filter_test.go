package pebblestore

import (
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilter_ContainsWhatWasAdded_AndLittleElse(t *testing.T) {
	t.Parallel()
	seed := maphash.MakeSeed()
	const n = 200_000
	f := new(filter)
	for i := range n {
		f.add(maphash.Comparable(seed, i))
	}
	wrong := 0
	for i := range n {
		require.True(t, f.mayContain(maphash.Comparable(seed, i)), i)
		if f.mayContain(maphash.Comparable(seed, -1-i)) {
			wrong++
		}
	}
	require.Less(t, wrong, n/50)
}

func TestFilter_Full_MayContainAnything(t *testing.T) {
	t.Parallel()
	f := &filter{parts: make([][]cacheLine, maxParts)}
	for i := range f.parts {
		f.parts[i] = make([]cacheLine, 1)
	}
	f.free = 1
	require.False(t, f.mayContain(1))
	f.add(2)
	require.True(t, f.mayContain(1))
	f.add(3)

	var none *filter
	none.add(1)
	require.True(t, none.mayContain(1))
}
