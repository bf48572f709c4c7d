package sample

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNetworkUse_AddsUpTheLinks(t *testing.T) {
	t.Parallel()
	const gigabit = 125e6
	before := map[string]link{"a": {1000, 2000, gigabit}, "b": {0, 0, 10 * gigabit}, "idle": {5, 5, 0}}
	after := map[string]link{"a": {1000 + 25e6, 2000 + 50e6, gigabit}, "b": {250e6, 0, 10 * gigabit}, "idle": {5, 5, 0}}
	perS, share := networkUse(before, after, 2*time.Second)
	require.InDelta(t, (25e6+50e6+250e6)/2, *perS, 1)
	require.InDelta(t, 25e6/gigabit, *share, 1e-9, "what link a sent")

	after["idle"] = link{6, 5, 0}
	perS, share = networkUse(before, after, time.Second)
	require.NotNil(t, perS)
	require.Nil(t, share, "the speed of a link that was used is not known")
}

func TestNetworkUse_OfOtherLinksIsUnknown(t *testing.T) {
	t.Parallel()
	one := map[string]link{"a": {10, 10, 0}}
	for name, after := range map[string]map[string]link{
		"none read": nil, "another": {"b": {10, 10, 0}}, "one more": {"a": {10, 10, 0}, "b": {}}, "set back": {"a": {9, 10, 0}},
	} {
		perS, share := networkUse(one, after, time.Second)
		require.Nil(t, perS, name)
		require.Nil(t, share, name)
	}
	perS, share := networkUse(map[string]link{}, map[string]link{}, time.Second)
	require.Zero(t, *perS, "a machine without a network sends nothing")
	require.Zero(t, *share)
}

func TestReadLinks_LeavesOutLoopbackAndWhatHasNoDevice(t *testing.T) {
	t.Parallel()
	all, err := net.Interfaces()
	require.NoError(t, err)
	dir := t.TempDir()
	links, err := readLinks(t.Context(), dir)
	require.NoError(t, err)
	var names []string
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			require.NotContains(t, links, i.Name)
			continue
		}
		names = append(names, i.Name)
		require.Contains(t, links, i.Name, "none has a device")
		require.Zero(t, links[i.Name].bytesPerS)
	}
	if len(names) == 0 {
		return
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, names[0], "device"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, names[0], "speed"), []byte("1000\n"), 0o666))
	links, err = readLinks(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, links, 1)
	require.InDelta(t, 125e6, links[names[0]].bytesPerS, 0)
	require.NoError(t, os.WriteFile(filepath.Join(dir, names[0], "speed"), []byte("-1\n"), 0o666))
	require.Zero(t, speed(dir, names[0]))
}
