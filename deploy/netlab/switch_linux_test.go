package netlab_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sagabench/deploy/netlab"
)

// frameTo returns a frame for host i.
func frameTo(i int, content string) []byte {
	hw := netlab.Hardware(i)
	return append(hw[:], content...)
}

func send(t *testing.T, end int, frame []byte) {
	t.Helper()
	_, err := unix.Write(end, frame)
	require.NoError(t, err)
}

// receive returns the next frame, for which it waits up to a minute.
func receive(t *testing.T, end int) []byte {
	t.Helper()
	buffer := make([]byte, 1<<16)
	require.NoError(t, unix.SetsockoptTimeval(end, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}))
	for {
		n, err := unix.Read(end, buffer)
		if err == unix.EINTR {
			continue
		}
		require.NoError(t, err)
		return buffer[:n]
	}
}

func requireNothing(t *testing.T, end int) {
	t.Helper()
	_, _, err := unix.Recvfrom(end, make([]byte, 1), unix.MSG_DONTWAIT)
	require.ErrorIs(t, err, unix.EAGAIN)
}

func TestSwitch_ForwardsAFrameToItsHostOnly(t *testing.T) {
	t.Parallel()
	_, ends := netlab.StartSwitch(t, netlab.Link{}, 3)
	send(t, ends[0], []byte("short"))          // no address
	send(t, ends[0], frameTo(7, "no host"))    // an address of nobody
	send(t, ends[0], []byte("z another kind")) // of another kind of address
	for _, content := range []string{"first", "second"} {
		send(t, ends[0], frameTo(2, content))
	}
	require.Equal(t, frameTo(2, "first"), receive(t, ends[2]))
	require.Equal(t, frameTo(2, "second"), receive(t, ends[2]))
	requireNothing(t, ends[0])
	requireNothing(t, ends[1])
}

func TestSwitch_ForwardsABroadcastToAllOthers(t *testing.T) {
	t.Parallel()
	_, ends := netlab.StartSwitch(t, netlab.Link{}, 3)
	all := append(bytes.Repeat([]byte{0xff}, 6), "who has 10.0.0.1?"...)
	send(t, ends[1], all)
	require.Equal(t, all, receive(t, ends[0]))
	require.Equal(t, all, receive(t, ends[2]))
	requireNothing(t, ends[1])
}

func TestSwitch_DelaysEachFrame(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Millisecond
	_, ends := netlab.StartSwitch(t, netlab.Link{Delay: delay}, 2)
	began := time.Now()
	for _, content := range []string{"a", "b", "c"} {
		send(t, ends[0], frameTo(1, content))
	}
	for _, content := range []string{"a", "b", "c"} {
		require.Equal(t, frameTo(1, content), receive(t, ends[1]))
		require.GreaterOrEqual(t, time.Since(began), delay)
	}
	// The way back takes as long.
	send(t, ends[1], frameTo(0, "answer"))
	require.Equal(t, frameTo(0, "answer"), receive(t, ends[0]))
	require.GreaterOrEqual(t, time.Since(began), 2*delay)
}

func TestSwitch_LosesAShareOfTheFrames(t *testing.T) {
	t.Parallel()
	s, ends := netlab.StartSwitch(t, netlab.Link{Loss: 0.5}, 2)
	const frames = 400
	for range frames {
		send(t, ends[0], frameTo(1, "x")) // waits if the switch falls behind
	}
	require.Eventually(t, func() bool { return s.Traffic().Frames == frames }, time.Minute, time.Millisecond)
	got := s.Traffic()
	require.InDelta(t, frames/2, got.Lost, 0.2*frames, "ten standard deviations are half of that")
	for range frames - got.Lost {
		receive(t, ends[1])
	}
	requireNothing(t, ends[1])
}

// A link of 1 MB/s takes a frame of 1,000 bytes each millisecond, and drops what would
// have to wait for longer than a tenth of a second.
func TestSwitch_KeepsToTheBandwidth(t *testing.T) {
	t.Parallel()
	s, ends := netlab.StartSwitch(t, netlab.Link{Bandwidth: 8e6}, 2)
	const frames = 300
	frame := frameTo(1, string(make([]byte, 994)))
	began := time.Now()
	for range frames {
		send(t, ends[0], frame)
	}
	require.Eventually(t, func() bool { return s.Traffic().Frames == frames }, time.Minute, time.Millisecond)
	took := frames - s.Traffic().Full
	for range took {
		receive(t, ends[1])
	}
	require.GreaterOrEqual(t, time.Since(began), time.Duration(took)*time.Millisecond)
	requireNothing(t, ends[1])
}

// BenchmarkSwitch forwards frames of 300 bytes, as those of sagas mostly are, in bursts.
func BenchmarkSwitch(b *testing.B) {
	_, ends := netlab.StartSwitch(b, netlab.Link{}, 2)
	frame, buffer := frameTo(1, string(make([]byte, 294))), make([]byte, 1<<16)
	const burst = 32
	for n := 0; b.Loop(); n++ {
		if _, err := unix.Write(ends[0], frame); err != nil {
			b.Fatal(err)
		}
		if n%burst == burst-1 {
			for range burst {
				if _, err := unix.Read(ends[1], buffer); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
