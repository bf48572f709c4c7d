package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// ProcessConfig says what to run and how to tell that it runs.
type ProcessConfig struct {
	Path   string
	Args   []string  // without the program's name
	Env    []string  // KEY=value; nil: ours, and without what may be secret as another User
	Dir    string    // working directory; empty: ours
	User   string    // account to run as, which only root may choose; empty: ours
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: kept for Log only
	Stderr io.Writer // nil: kept for Log only; may be the same as Stdout

	// StopSignal is what Stop asks with; 0: SIGTERM.
	StopSignal syscall.Signal

	// Ready is asked again and again until it returns nil, the process ends or
	// the context does. Nil: the process is ready once it was started.
	Ready func(ctx context.Context, p *Process) error
}

// Process is a running child. Its methods may be called from many goroutines.
type Process struct {
	name       string
	cmd        *exec.Cmd
	stopSignal syscall.Signal
	log        tail
	done       chan struct{}
	err        error // how it ended; read only once done is closed

	killed atomic.Bool // by Kill
}

// readyPause is how long to wait between two questions whether a process is
// ready. Redis takes about 10 ms to start.
const readyPause = 2 * time.Millisecond

// outputDelay bounds the wait for output that a grandchild holds open after the
// process has ended.
const outputDelay = time.Second

// StartProcess runs a program and waits until it is ready; give ctx a deadline.
// It bounds the start only: the process then runs until it ends by itself, is
// stopped, or this process ends. When it does not become ready it is killed,
// and the error holds the end of what it wrote.
//
// The child is the leader of a process group of its own, so that a Ctrl-C in
// the terminal reaches only us and we stop our children in the order we need.
func StartProcess(ctx context.Context, cfg ProcessConfig) (*Process, error) {
	p := &Process{
		name:       filepath.Base(cfg.Path),
		cmd:        exec.Command(cfg.Path, cfg.Args...),
		stopSignal: cmp.Or(cfg.StopSignal, syscall.SIGTERM),
		done:       make(chan struct{}),
	}
	p.cmd.Env = cfg.Env
	if p.cmd.Env == nil {
		p.cmd.Env = environment(cfg.User)
	}
	p.cmd.Dir = cfg.Dir
	p.cmd.Stdin = cfg.Stdin
	p.cmd.Stdout = p.log.tee(cfg.Stdout)
	p.cmd.Stderr = p.log.tee(cfg.Stderr)
	p.cmd.WaitDelay = outputDelay
	var err error
	if p.cmd.SysProcAttr, err = childAttributes(cfg.User); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		if cfg.User != "" && errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("the account %s must be able to run %s and to enter %s: %w", cfg.User, cfg.Path, cmp.Or(cfg.Dir, "."), err)
		}
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	if cfg.Ready == nil {
		return p, nil
	}
	if err := p.waitReady(ctx, cfg.Ready); err != nil {
		p.Kill()
		return nil, &startError{name: p.name, log: p.Log(), err: err}
	}
	return p, nil
}

// runProcess runs a program to its end, killing it when the context ends first.
// The error holds the end of what the program wrote.
func runProcess(ctx context.Context, cfg ProcessConfig) error {
	p, err := StartProcess(ctx, cfg)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		err = p.err
	case <-ctx.Done():
		p.Kill()
		err = ctx.Err()
	}
	if err != nil {
		return &startError{name: p.name, log: p.Log(), err: err}
	}
	return nil
}

// run starts the process and waits for its end on one and the same thread. On
// Linux the kernel kills the child when the thread that forked it exits, not
// when the process does. A thread that the Go runtime hands from goroutine to
// goroutine exits when one of them ends while locked to it, so this one has to
// be ours alone until the child is gone. It costs nothing: waiting for a child
// occupies a thread anyway.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	release, err := guard(p.cmd.Process.Pid)
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	release()
	close(p.done)
}

func (p *Process) waitReady(ctx context.Context, ready func(context.Context, *Process) error) error {
	pause := time.NewTicker(readyPause)
	defer pause.Stop()
	for {
		err := ready(ctx, p)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (%w)", ctx.Err(), err)
		case <-pause.C:
		}
	}
}

// PID is the process's id; it stays after the end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the end of what the process wrote to its standard output and error,
// some kilobytes.
func (p *Process) Log() string { return p.log.String() }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the process has ended and says how: nil after exit status
// 0, otherwise an *exec.ExitError.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends sig to the process alone, not to its children. Once it has
// ended the error is os.ErrProcessDone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Stop asks the process to end, kills it when it has not after grace, and returns
// once it is gone. It returns nil when the process ended with status 0, by the
// very signal that asked or by an earlier Kill; otherwise how it ended.
func (p *Process) Stop(grace time.Duration) error {
	asked := p.Signal(p.stopSignal)
	if asked != nil && !errors.Is(asked, os.ErrProcessDone) {
		p.Kill() // no such signal here, as on Windows
		return nil
	}
	if !p.endsWithin(grace) {
		p.Kill()
		return fmt.Errorf("%s did not stop within %v and was killed", p.name, grace)
	}
	if p.err == nil || p.killed.Load() || endedBy(p.cmd.ProcessState, p.stopSignal) {
		return nil
	}
	return p.ended()
}

func (p *Process) endsWithin(grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	}
	select {
	case <-p.done: // both had happened
		return true
	default:
		return false
	}
}

// Kill ends the process, its group and, on Linux, its other children at once
// (SIGKILL) and returns when the process is gone.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	p.killed.Store(true)
	killGroup(p.cmd.Process)
	<-p.done
}

// ended describes an end that nobody asked for.
func (p *Process) ended() error {
	if p.err == nil {
		return fmt.Errorf("%s ended: exit status 0", p.name)
	}
	return fmt.Errorf("%s ended: %w", p.name, p.err)
}

func endedBy(state *os.ProcessState, sig syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == sig
}
