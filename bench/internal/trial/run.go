package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/store/open"
)

// Child is how to start a bench server that listens on a free port and prints
// Announce and its URL on a line of stdout.
type Child struct {
	Path string
	Args []string
	// Env gives the environment with which it uses the store of a run.
	Env      func(open.Target) []string
	Announce string
}

// Limits of a child's life. A store with much in it takes a while to open.
const (
	startTimeout = 30 * time.Second
	stopGrace    = 15 * time.Second
)

// Run drives the servers once, and audits the store if it is known.
func Run(ctx context.Context, cfg Config, servers Servers) (result.Summary, error) {
	var m measurement
	t := servers.trial(cfg)
	defer t.close()
	err := t.serve(ctx, func(ctx context.Context) (err error) {
		m, err = t.once(ctx)
		return err
	})
	return t.end(ctx, m, err)
}

// Own is a bench server that is started on the store, and stopped when it was driven.
// On a server the sagas get a key prefix or a schema of their own, which is removed at
// the end; an embedded store without a directory gets one that is removed.
func Own(target open.Target, child Child) Servers {
	return Servers{func(cfg Config) *trial {
		target := target.Fresh()
		t := &trial{cfg: cfg, target: &target, own: !target.Embedded(), shared: true}
		switch {
		case target.Embedded():
			t.topology = "load and app with its embedded store on one machine, in two processes"
		case local(target.URL()):
			t.topology = "load, app and store on one machine, in three processes"
		default:
			t.topology = "load and app on one machine, store on another"
		}
		t.serve = func(ctx context.Context, drive func(context.Context) error) error { return t.start(ctx, child, drive) }
		return t
	}}
}

// start prepares the store and has a server on it driven. An error before drive
// leaves nothing behind.
func (t *trial) start(ctx context.Context, child Child, drive func(context.Context) error) error {
	fresh := t.target.Embedded() && t.target.Config.Pebble.Dir == ""
	if !fresh {
		if err := t.inspect(ctx); err != nil {
			return err
		}
	}
	if err := result.MakeDir(t.cfg.Dir); err != nil {
		return err
	}
	t.made = true
	if fresh {
		t.target.Config.Pebble.Dir = storeDir(t.cfg.Dir)
		t.temporary = t.target.Config.Pebble.Dir
		if err := t.inspect(ctx); err != nil {
			return err
		}
	}
	if err := t.fill(ctx); err != nil {
		return err
	}
	return t.withServer(ctx, child, drive)
}

// close removes what was only there for the run.
func (t *trial) close() {
	if t.temporary != "" {
		os.RemoveAll(t.temporary)
	}
}

// withServer drives a child from its start to its end.
func (t *trial) withServer(ctx context.Context, child Child, drive func(context.Context) error) (err error) {
	t.status("starting the bench server")
	logFile, err := result.Create(t.cfg.Dir, "server.log")
	if err != nil {
		return err
	}
	defer closeLog(logFile)
	var serverURL string
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	process, err := lab.StartProcess(start, lab.ProcessConfig{
		Path: child.Path, Args: child.Args, Env: child.Env(*t.target), Stderr: logFile,
		Ready: func(_ context.Context, p *lab.Process) error {
			for line := range strings.Lines(p.Log()) {
				if u, ok := strings.CutPrefix(strings.TrimSpace(line), child.Announce); ok {
					serverURL = u
					return nil
				}
			}
			return errNoServer
		},
	})
	if err != nil {
		return err
	}
	t.probe.AppPIDs = []int{process.PID()}

	driving, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan struct{})
	go func() {
		select {
		case <-process.Done(): // there is nobody left to drive
			stop()
		case <-stopped:
		}
	}()
	if err = t.aim([]string{serverURL}); err == nil {
		err = drive(driving)
	}
	close(stopped)
	select {
	case <-process.Done():
		t.died = fmt.Sprintf("the bench server ended in the middle: %v", process.Wait())
	default:
		t.status("stopping the bench server")
		if stopErr := process.Stop(stopGrace); err == nil {
			err = stopErr
		}
	}
	return err
}

var errNoServer = errors.New("the bench server did not say where it listens")

// closeLog removes a log that holds nothing.
func closeLog(f *os.File) {
	info, err := f.Stat()
	f.Close()
	if err == nil && info.Size() == 0 {
		os.Remove(f.Name())
	}
}

// local reports whether a URL's host is this machine.
func local(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	if ip == nil || ip.IsLoopback() {
		return ip != nil
	}
	addresses, _ := net.InterfaceAddrs() // without them it is another machine
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		own, ok := a.(*net.IPNet)
		return ok && own.IP.Equal(ip)
	})
}
