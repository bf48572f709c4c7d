package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestDisk_CountsThePagesThatItWrites(t *testing.T) {
	t.Parallel()
	d := newDisk(vfs.NewMem(), func(error) {})
	f, err := d.Create("log", "")
	require.NoError(t, err)
	for _, step := range []struct {
		write int
		sync  bool
		pages int64 // until then
	}{
		{100, false, 1},
		{100, false, 1},          // the page is dirty anyway
		{3896, true, 1},          // to its end
		{1, true, 2},             // the next page
		{1, true, 3},             // again, since it was synced meanwhile
		{2 * page, false, 6},     // from the middle of one to the middle of the third
		{page - 2, true, 6},      // to its end
		{0, true, 6},             // nothing
		{3 * page, false, 9},     // whole pages
		{page + 1, false, 11},    // and one more
		{2*page - 1, false, 12},  // from within it to the end of the next
		{10*page - 1, false, 22}, // from the start of a page
	} {
		_, err := f.Write(make([]byte, step.write))
		require.NoError(t, err)
		if step.sync {
			require.NoError(t, f.Sync())
		}
		require.Equal(t, step.pages*page, d.written.Load(), "after %d bytes", step.write)
	}
	require.NoError(t, f.Close())
}

func TestCounters_SayWhatHasYetToBeFlushed(t *testing.T) {
	t.Parallel()
	s := open(t, inTemp(t))
	before := s.Counters()
	must(t, s, advance("a", created))
	after := s.Counters()
	require.Greater(t, after.Debt, before.Debt)
	require.Greater(t, after.Written, before.Written)
	require.NoError(t, s.Close())
	require.Equal(t, int64(-1), s.Counters().Debt, "of a closed store it is unknown")
	require.Implements(t, (*store.CounterSource)(nil), s)
}
