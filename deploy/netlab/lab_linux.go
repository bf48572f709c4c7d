package netlab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Lab is a network of hosts. Its methods may be called concurrently.
type Lab struct {
	hosts []*Host
	net   *netSwitch
	close func() error
}

// Host is a host of a lab. Its methods may be called concurrently.
type Host struct {
	name  string
	addr  netip.Addr
	cpus  []int // empty: all
	dir   string
	first *exec.Cmd // its first process
	pipe  io.Closer // to that one, which ends when it is closed
	pidfd int
}

// Start makes the hosts and their network. It returns an error that wraps ErrNotRoot
// without the right to do that. If it fails, nothing is left.
func Start(cfg Config) (_ *Lab, err error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start a lab: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start a lab: %w: run it again with sudo", ErrNotRoot)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("start a lab: %w: install iproute2", err)
	}
	l := &Lab{net: newSwitch(cfg.Link)}
	l.close = sync.OnceValue(l.end)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a lab: %w", err), l.Close())
		}
	}()
	sets, err := cpuSets(len(cfg.Hosts))
	if err != nil {
		return nil, err
	}
	names := "127.0.0.1 localhost\n"
	for i, name := range cfg.Hosts {
		names += fmt.Sprintf("%v %s\n", addr(i), name)
	}
	for i, name := range cfg.Hosts {
		h, err := startHost(name, names)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", name, err)
		}
		h.addr, h.cpus = addr(i), sets[i]
		l.hosts = append(l.hosts, h)
		if err := l.connect(h); err != nil {
			return nil, fmt.Errorf("host %s: %w", name, err)
		}
	}
	if err := l.net.start(); err != nil {
		return nil, err
	}
	return l, nil
}

// cpuSets divides the cores that we may use among n hosts. The sets are empty if there are
// fewer cores than hosts.
func cpuSets(n int) (sets [][]int, err error) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return nil, fmt.Errorf("read the CPU affinity: %w", err)
	}
	each := own.Count() / n
	sets = make([][]int, n)
	for cpu, i := 0, 0; i < each*n; cpu++ {
		if own.IsSet(cpu) {
			sets[i/each] = append(sets[i/each], cpu)
			i++
		}
	}
	return sets, nil
}

// firstProcess is what the first process of a host runs, with the host's name and its
// /etc/hosts as arguments. It says when it has set up the host, and then waits for the end
// of the pipe. As it ignores the end of its children, the kernel removes orphans at once.
const firstProcess = `set -e
mount -t proc proc /proc
echo "$1" >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs /run
printf %s "$2" >/run/hosts
mount --bind /run/hosts /etc/hosts
umount /run
trap '' CHLD
echo ready
read -r end || true`

// startHost starts the first process of a host and waits until it has set up the host.
func startHost(name, names string) (_ *Host, err error) {
	h := &Host{name: name, pidfd: -1}
	if h.dir, err = os.Getwd(); err != nil {
		return nil, err
	}
	h.first = exec.Command("/bin/sh", "-c", firstProcess, "sagabench-host", name, names)
	h.first.SysProcAttr = &unix.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Unshareflags: unix.CLONE_NEWNS, // for which Go makes all mounts private
		Setpgid:      true,             // not reached by Ctrl-C
	}
	var log bytes.Buffer
	h.first.Stderr = &log
	stdin, err := h.first.StdinPipe()
	if err != nil {
		return nil, err
	}
	h.pipe = stdin
	stdout, err := h.first.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.first.Start(); errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%w: %w, as in a container without --privileged", ErrNotRoot, err)
	} else if err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		h.stop()
		return nil, fmt.Errorf("set it up: %s", strings.TrimSpace(log.String()))
	}
	if h.pidfd, err = unix.PidfdOpen(h.first.Process.Pid, 0); err != nil {
		h.stop()
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	return h, nil
}

// stop kills all processes of the host and waits until they are gone.
func (h *Host) stop() {
	_ = h.first.Process.Kill()
	_ = h.first.Wait()
	_ = h.pipe.Close()
	if h.pidfd >= 0 {
		_ = unix.Close(h.pidfd)
	}
}

// connect gives the host its device eth0, and connects that to the switch.
func (l *Lab) connect(h *Host) error {
	i := len(l.hosts) - 1
	if err := h.onThread(func() error { return l.net.addPort() }); err != nil {
		return err
	}
	hw := hardware(i)
	// The queue is that of a burst of answers to many clients.
	ip := exec.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(fmt.Sprintf(`link set lo up
link set eth0 address %v
link set eth0 txqueuelen 10000 up
address add %v/24 dev eth0
`, net.HardwareAddr(hw[:]), h.addr))
	var log bytes.Buffer
	ip.Stdout, ip.Stderr = &log, &log
	if err := h.Start(ip); err != nil {
		return fmt.Errorf("run ip: %w", err)
	}
	if err := ip.Wait(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, strings.TrimSpace(log.String()))
	}
	return nil
}

// Hosts returns the hosts in the order of Config.Hosts.
func (l *Lab) Hosts() []*Host { return slices.Clone(l.hosts) }

// Host returns the host of that name. It panics if there is none.
func (l *Lab) Host(name string) *Host {
	i := slices.IndexFunc(l.hosts, func(h *Host) bool { return h.name == name })
	return l.hosts[i]
}

// Traffic returns what the switch has done so far.
func (l *Lab) Traffic() Traffic { return l.net.traffic() }

// Close kills all processes of the hosts, and returns when they are gone. It waits until
// Wait was called for all commands that were started.
func (l *Lab) Close() error { return l.close() }

func (l *Lab) end() error {
	for _, h := range l.hosts {
		h.stop()
	}
	return l.net.close()
}

// Name returns the name of the host, which all hosts of the lab can resolve.
func (h *Host) Name() string { return h.name }

// Addr returns the address of the host.
func (h *Host) Addr() netip.Addr { return h.addr }

// CPUs returns the CPUs of the host; empty: all, because there are fewer than hosts.
func (h *Host) CPUs() []int { return slices.Clone(h.cpus) }

// PID returns the id of the host's first process: nsenter --all --target PID leads to the
// host.
func (h *Host) PID() int { return h.first.Process.Pid }

// Start starts cmd like its method Start, on the host. The end of the lab kills what it
// started, and everything that this started.
func (h *Host) Start(cmd *exec.Cmd) error { return h.onThread(cmd.Start) }

// onThread calls do on a thread that has been moved to the host. Children inherit that.
func (h *Host) onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the main thread does not end: it waits here
			defer runtime.UnlockOSThread()
			done <- h.onThread(do)
			return
		}
		err := h.enter() // and never back: the thread ends with this goroutine
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// enter moves the calling thread to the host.
func (h *Host) enter() error {
	// Threads that share their directory cannot change to other mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	const all = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if err := unix.Setns(h.pidfd, all); err != nil {
		return fmt.Errorf("enter the namespaces of host %s: %w", h.name, err)
	}
	if err := unix.Chdir(h.dir); err != nil { // other mounts begin in their root
		return fmt.Errorf("change to %s: %w", h.dir, err)
	}
	if len(h.cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range h.cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("set the CPU affinity: %w", err)
	}
	return nil
}
