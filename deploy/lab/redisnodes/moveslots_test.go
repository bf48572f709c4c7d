//go:build unix

package redisnodes_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
)

func TestMoveSlots_MovesSlotsWithTheirKeys_UnderLoad_OnEveryBinary(t *testing.T) {
	t.Parallel()
	onEveryBinary(t, func(t *testing.T, cfg lab.Config) {
		ctx := patient(t)
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: cfg})
		client := connectCluster(t, cluster)
		from, to := cluster.Nodes()[0], cluster.Nodes()[2]
		slots, err := cluster.Slots(ctx, from)
		require.NoError(t, err)
		require.Len(t, slots, 16384/3)
		moved := slots[:120]

		// A counter in each slot, and one slot with more keys than one MIGRATE moves.
		tags := tagsOf(moved)
		for _, tag := range tags {
			require.NoError(t, client.Set(ctx, "{"+tag+"}", 0, 0).Err())
		}
		for i := range 35 {
			require.NoError(t, client.Set(ctx, "{"+tags[0]+"}"+strconv.Itoa(i), i, 0).Err())
		}
		done := make(chan error)
		go func() { done <- cluster.MoveSlots(ctx, from, to, moved...) }()
		rounds := 0
		for moving := true; moving; rounds++ {
			select {
			case err := <-done:
				require.NoError(t, err)
				moving = false
			default:
			}
			for _, tag := range tags {
				require.NoError(t, client.Incr(ctx, "{"+tag+"}").Err())
			}
		}
		require.NoError(t, cluster.WaitReady(ctx))
		for _, tag := range tags {
			require.Equal(t, strconv.Itoa(rounds), client.Get(ctx, "{"+tag+"}").Val())
		}
		for i := range 35 {
			require.Equal(t, strconv.Itoa(i), client.Get(ctx, "{"+tags[0]+"}"+strconv.Itoa(i)).Val())
		}
		require.EqualValues(t, len(tags)+35, connect(t, to).DBSize(ctx).Val())
		require.Zero(t, connect(t, from).DBSize(ctx).Val())
		left, err := cluster.Slots(ctx, from)
		require.NoError(t, err)
		require.Equal(t, slots[120:], left)
		for _, slot := range []int{moved[0], moved[119]} {
			master, err := cluster.Master(ctx, slot)
			require.NoError(t, err)
			require.Equal(t, to, master)
		}

		err = cluster.MoveSlots(ctx, from, to, left[0], moved[0])
		require.EqualError(t, err, "move slots: "+from.Addr()+" does not serve slot 0")
		require.ErrorContains(t, cluster.MoveSlots(ctx, from, cluster.Nodes()[3], left[0]), "CLUSTER SETSLOT IMPORTING")
		require.NoError(t, cluster.WaitReady(ctx))
		still, err := cluster.Slots(ctx, from)
		require.NoError(t, err)
		require.Equal(t, left, still, "nothing was moved")
	})
}

// tagsOf returns a hash tag for each slot.
func tagsOf(slots []int) []string {
	tags := make([]string, len(slots))
	for found, i := 0, 0; found < len(slots); i++ {
		tag := strconv.Itoa(i)
		if slot := slotOf(tag); slot >= slots[0] && slot-slots[0] < len(slots) && tags[slot-slots[0]] == "" {
			tags[slot-slots[0]] = tag
			found++
		}
	}
	return tags
}

// slotOf returns the slot of a key: its CRC16 (XMODEM) modulo 16384.
func slotOf(key string) int {
	var crc uint16
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % 16384)
}
