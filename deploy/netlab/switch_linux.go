package netlab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	queueTime = 100 * time.Millisecond // of frames that wait for the bandwidth of a link
	maxFrame  = 1 << 16
	turn      = 64 // frames that are taken from a host before the others get their turn
)

// netSwitch passes frames between TAP devices, from one thread: that is fast enough for
// tens of thousands of sagas per second, and Go's own timers have a resolution of 1 ms
// only.
type netSwitch struct {
	link    Link
	ports   []*port
	started time.Time
	wake    int           // an eventfd that ends the thread
	done    chan struct{} // closed when the thread has ended
	spare   [][]byte      // buffers
	buffer  []byte

	frames, lost, full, busy atomic.Int64
}

// port is the end of a link at the switch.
type port struct {
	tap     int
	free    time.Duration // when the bandwidth of the link is free
	waiting []frame       // in the order of their times
}

type frame struct {
	at   time.Duration // when it reaches the other host
	data []byte
}

func newSwitch(link Link) *netSwitch {
	return &netSwitch{link: link, wake: -1, buffer: make([]byte, maxFrame)}
}

// addPort makes the device eth0 in the network namespace of the calling thread. The device
// ends with its file.
func (s *netSwitch) addPort() error {
	const path = "/dev/net/tun"
	tap, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	s.ports = append(s.ports, &port{tap: tap})
	request, err := unix.NewIfreq("eth0")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(tap, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("make a TAP device: %w", err)
	}
	return nil
}

func (s *netSwitch) start() (err error) {
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	s.started, s.done = time.Now(), make(chan struct{})
	go s.run()
	return nil
}

// close ends the switch and its devices.
func (s *netSwitch) close() error {
	if s.done != nil {
		if _, err := unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			return fmt.Errorf("end the switch: %w", err)
		}
		<-s.done
		_ = unix.Close(s.wake)
	}
	for _, p := range s.ports {
		_ = unix.Close(p.tap)
	}
	return nil
}

func (s *netSwitch) traffic() Traffic {
	return Traffic{
		Frames: s.frames.Load(), Lost: s.lost.Load(), Full: s.full.Load(),
		Busy: float64(s.busy.Load()) / float64(time.Since(s.started)),
	}
}

func (s *netSwitch) now() time.Duration { return time.Since(s.started) }

func (s *netSwitch) run() {
	defer close(s.done)
	runtime.LockOSThread()                             // until the end, and the thread ends, too
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns; by default the kernel rounds up to 50 µs
	polled := []unix.PollFd{{Fd: int32(s.wake), Events: unix.POLLIN}}
	for _, p := range s.ports {
		polled = append(polled, unix.PollFd{Fd: int32(p.tap), Events: unix.POLLIN})
	}
	for {
		began := s.now()
		for i, p := range s.ports {
			if polled[i+1].Revents != 0 {
				s.receive(p)
			}
		}
		next := s.deliver()
		ended := s.now()
		s.busy.Add(int64(ended - began))
		var timeout *unix.Timespec // none: until a frame comes
		if next > 0 {
			pause := unix.NsecToTimespec(int64(max(next-ended, 0)))
			timeout = &pause
		}
		if _, err := unix.Ppoll(polled, timeout, nil); err != nil {
			for i := range polled { // interrupted: they are as they were
				polled[i].Revents = 0
			}
		}
		if polled[0].Revents != 0 {
			return
		}
	}
}

// receive takes what a host has sent.
func (s *netSwitch) receive(p *port) {
	for range turn {
		n, err := unix.Read(p.tap, s.buffer)
		if err != nil || n == 0 {
			return
		}
		s.frames.Add(1)
		if s.link.Loss > 0 && rand.Float64() < s.link.Loss {
			s.lost.Add(1)
			continue
		}
		at := s.now()
		if s.link.Bandwidth > 0 {
			if p.free-at > queueTime {
				s.full.Add(1)
				continue
			}
			p.free = max(p.free, at) + time.Duration(float64(n)*8/float64(s.link.Bandwidth)*float64(time.Second))
			at = p.free
		}
		p.waiting = append(p.waiting, frame{at + s.link.Delay, append(s.takeBuffer(), s.buffer[:n]...)})
	}
}

func (s *netSwitch) takeBuffer() []byte {
	if len(s.spare) == 0 {
		return nil
	}
	b := s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	return b[:0]
}

// deliver forwards the frames whose time has come, and returns the time of the next one;
// 0: there is none.
func (s *netSwitch) deliver() (next time.Duration) {
	now := s.now()
	for _, p := range s.ports {
		sent := 0
		for _, f := range p.waiting {
			if f.at > now {
				break
			}
			s.forward(p, f.data)
			s.spare = append(s.spare, f.data)
			sent++
		}
		p.waiting = p.waiting[sent:]
		if len(p.waiting) > 0 && (next == 0 || p.waiting[0].at < next) {
			next = p.waiting[0].at
		}
	}
	return next
}

// forward writes a frame to the host it is for, or to all others. A host that is not up
// yet does not take it.
func (s *netSwitch) forward(from *port, data []byte) {
	if len(data) < 6 {
		return
	}
	if data[0]&1 != 0 { // a broadcast or a multicast
		for _, p := range s.ports {
			if p != from {
				_, _ = unix.Write(p.tap, data)
			}
		}
		return
	}
	to := [6]byte(data)
	if i := int(to[5]) - 1; i >= 0 && i < len(s.ports) && to == hardware(i) {
		_, _ = unix.Write(s.ports[i].tap, data)
	}
}
