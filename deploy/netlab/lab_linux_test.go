package netlab_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sagabench/deploy/netlab"
)

// newLab starts a lab for a test. Without root there is none: make test says that these
// tests are skipped.
func newLab(t *testing.T, cfg netlab.Config) *netlab.Lab {
	t.Helper()
	l, err := netlab.Start(cfg)
	if errors.Is(err, netlab.ErrNotRoot) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// command returns a command that runs this test binary as a child.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, args[1:]...)
	cmd.Env = append(os.Environ(), childVariable+"="+args[0])
	return cmd
}

// run runs a command on a host and returns its output.
func run(t *testing.T, h *netlab.Host, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, h.Start(cmd))
	require.NoError(t, cmd.Wait(), out.String())
	return out.String()
}

func shell(script string) *exec.Cmd { return exec.Command("sh", "-c", script) }

// dialFrom connects from a host, and returns how long that took, and the error.
func dialFrom(t *testing.T, h *netlab.Host, addr string) (took time.Duration, err string) {
	t.Helper()
	out := run(t, h, command(t, "dial", addr))
	ns, err, _ := strings.Cut(out, " ")
	n, bad := strconv.ParseInt(ns, 10, 64)
	require.NoError(t, bad, out)
	return time.Duration(n), err
}

// listenOn listens on a host until the test ends.
func listenOn(t *testing.T, h *netlab.Host, addr string) {
	t.Helper()
	cmd := command(t, "listen", addr)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, h.Start(cmd))
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "listening <nil>\n", line)
}

const refused = "connection refused"

func TestHosts_ReachEachOtherWithTheDelay(t *testing.T) {
	t.Parallel()
	const delay = 20 * time.Millisecond
	cfg := netlab.DefaultConfig()
	cfg.Link.Delay = delay
	l := newLab(t, cfg)
	listenOn(t, l.Host("store"), "store:6379")
	for i, h := range l.Hosts() {
		require.Equal(t, cfg.Hosts[i], h.Name())
		require.Equal(t, h.Name()+"\n", run(t, h, shell("cat /proc/sys/kernel/hostname")))
		other := l.Hosts()[(i+1)%len(l.Hosts())]
		took, err := dialFrom(t, h, other.Name()+":1")
		require.Contains(t, err, other.Addr().String()+":1: connect: "+refused, "by that host")
		require.GreaterOrEqual(t, took, 2*delay, "there and back")
		took, err = dialFrom(t, h, "store:6379")
		require.Equal(t, "<nil>", err)
		if h.Name() != "store" {
			require.GreaterOrEqual(t, took, 2*delay)
		}
	}
	require.NotZero(t, l.Traffic().Frames)
	require.NotZero(t, l.Traffic().Busy)
}

func TestHosts_ReachNothingElse(t *testing.T) {
	t.Parallel()
	cfg := netlab.DefaultConfig()
	l := newLab(t, cfg)
	app1 := l.Host("app1")
	require.Equal(t, "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.2", strings.TrimSpace(run(t, app1, shell("ip route"))))

	ours, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer ours.Close()
	port := strconv.Itoa(ours.Addr().(*net.TCPAddr).Port)
	_, fault := dialFrom(t, app1, "127.0.0.1:"+port)
	require.Contains(t, fault, refused, "its loopback is its own")
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() {
			_, fault := dialFrom(t, app1, net.JoinHostPort(ip.String(), port))
			require.NotEqual(t, "<nil>", fault, "%v is this machine", ip)
		}
	}

	listenOn(t, l.Host("app2"), "127.0.0.1:7000")
	_, fault = dialFrom(t, app1, "app2:7000")
	require.Contains(t, fault, refused, "it is on the loopback of app2")
	_, fault = dialFrom(t, l.Host("app2"), "127.0.0.1:7000")
	require.Equal(t, "<nil>", fault)

	another := newLab(t, cfg)
	listenOn(t, another.Host("store"), "store:7000")
	_, fault = dialFrom(t, app1, "store:7000")
	require.Contains(t, fault, refused, "that is the store of another lab")
}

func TestHosts_HaveCoresOfTheirOwn_IfThereAreEnough(t *testing.T) {
	t.Parallel()
	var own unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &own))
	each := own.Count() / 2
	seen := map[int]bool{}
	for _, h := range newLab(t, netlab.Config{Hosts: []string{"a", "b"}}).Hosts() {
		require.Len(t, h.CPUs(), each)
		for _, cpu := range h.CPUs() {
			require.True(t, own.IsSet(cpu) && !seen[cpu], cpu)
			seen[cpu] = true
		}
		if each > 0 {
			require.Equal(t, strconv.Itoa(each), strings.TrimSpace(run(t, h, shell("nproc"))))
		}
	}
	var after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, own, after)

	sets, err := netlab.CPUSets(own.Count() + 1)
	require.NoError(t, err)
	require.Equal(t, make([][]int, own.Count()+1), sets, "too few cores")
}

// state is what a lab must not change on this machine.
func state(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", "ip netns list; ip -brief address; ip -brief link; ip route; ls /run/netns 2>&1; cat /proc/self/mountinfo").Output()
	require.NoError(t, err)
	return string(out)
}

func TestClose_LeavesNothing(t *testing.T) {
	before := state(t)
	l := newLab(t, netlab.DefaultConfig())
	run(t, l.Host("load"), shell("setsid sleep 600 >/dev/null 2>&1 &"))
	require.Equal(t, before, state(t), "nor does a lab change anything")
	require.NoError(t, l.Close())
	for _, h := range l.Hosts() {
		requireGone(t, h.PID())
	}
	require.Equal(t, before, state(t))
}

func TestKill_LeavesNothing(t *testing.T) {
	newLab(t, netlab.DefaultConfig()) // skips without root
	before := state(t)
	mark := fmt.Sprintf("mark-%d-%d", os.Getpid(), time.Now().UnixNano())
	child := command(t, "lab", mark)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	pids := strings.Fields(line)
	require.Len(t, pids, 4, line)
	require.Eventually(t, func() bool { return len(withMark(mark)) > 1 }, time.Minute, 10*time.Millisecond, "the lab and the orphan")

	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.Eventually(t, func() bool { return len(withMark(mark)) == 0 }, time.Minute, 10*time.Millisecond)
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		requireGone(t, pid)
	}
	require.Equal(t, before, state(t))
}

// withMark returns the processes that have the mark among their arguments.
func withMark(mark string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), mark) {
			found = append(found, file)
		}
	}
	return found
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }, time.Minute, 10*time.Millisecond)
}

func TestStart_SaysThatItNeedsRoot(t *testing.T) {
	t.Parallel()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // until the end: this thread alone is another user's
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 && errno != unix.EPERM {
			failed <- errno
			return
		}
		_, err := netlab.Start(netlab.DefaultConfig())
		failed <- err
	}()
	err := <-failed
	require.ErrorIs(t, err, netlab.ErrNotRoot)
	require.EqualError(t, err, "start a lab: network namespaces require root: run it again with sudo")
}

func TestStart_NamesTheWrongField(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]netlab.Config{
		`hosts: 0, must be 1 to 200`:                                     {},
		`hosts: "a b", must be 1 to 15 of a-z, 0-9 and -, and only once`: {Hosts: []string{"a b"}},
		`hosts: "a", must be 1 to 15 of a-z, 0-9 and -, and only once`:   {Hosts: []string{"a", "a"}},
		`delay: -1s, must be 0s to 10s`:                                  {Hosts: []string{"a"}, Link: netlab.Link{Delay: -time.Second}},
		`loss: 1, must be 0 to less than 1`:                              {Hosts: []string{"a"}, Link: netlab.Link{Loss: 1}},
		`bandwidth: -1, must be 0 or more bits per second`:               {Hosts: []string{"a"}, Link: netlab.Link{Bandwidth: -1}},
	} {
		_, err := netlab.Start(cfg)
		require.EqualError(t, err, "start a lab: "+want)
	}
}

func TestStart_SaysWhyItFailed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := netlab.Start(netlab.DefaultConfig())
	if errors.Is(err, netlab.ErrNotRoot) {
		t.Skip(err)
	}
	require.ErrorContains(t, err, "install iproute2")
}
