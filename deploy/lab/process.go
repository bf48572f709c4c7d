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

// ProcessConfig says what to run and how to see that it is ready.
type ProcessConfig struct {
	Path   string
	Args   []string  // without the program's name
	Env    []string  // KEY=value; nil: ours, for another User without what may be secret
	Dir    string    // working directory; empty: ours
	User   string    // account to run as, which only root may choose; empty: ours
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // also gets the standard output; may be nil
	Stderr io.Writer // also gets the standard error; may be nil, or the same as Stdout

	StopSignal syscall.Signal // what Stop sends; 0: SIGTERM

	CPUs float64 // cores that it and its children may use; 0: as we

	container *container // runs it; nil: it is installed

	// Ready is called again and again until it returns nil, the process ends or the
	// context does. If it is nil, the process is ready at once.
	Ready func(ctx context.Context, p *Process) error
}

// Process is a running child. Its methods may be called concurrently.
type Process struct {
	name       string
	cmd        *exec.Cmd
	stopSignal syscall.Signal
	limit      *cpuLimit
	log        tail
	container  *container                 // nil: cmd is the process itself
	inside     atomic.Pointer[os.Process] // the process in the container; nil: not known yet
	done       chan struct{}
	err        error // how it ended; valid when done is closed

	killed atomic.Bool // by Kill
}

const (
	// readyPause is the time between two calls of Ready. Redis starts in about 10 ms.
	readyPause = 2 * time.Millisecond
	// outputDelay bounds the wait for output after the end of a process whose own
	// children hold the output open.
	outputDelay = time.Second
)

// StartProcess runs a program and waits until it is ready. ctx bounds the start only:
// the process runs until it ends, is stopped, or this process ends. If it does not
// become ready, StartProcess kills it, and the error holds the end of its log.
//
// The child leads a process group of its own. A Ctrl-C in the terminal does not reach
// it, so that we can stop our children in order.
func StartProcess(ctx context.Context, cfg ProcessConfig) (*Process, error) {
	name := filepath.Base(cfg.Path)
	var inside *container
	if cfg.container != nil {
		var err error
		name += " of image " + cfg.container.image
		if cfg, inside, err = cfg.container.wrap(cfg); err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
	}
	p := &Process{
		name:       name,
		container:  inside,
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
	if cfg.CPUs > 0 {
		if p.limit, err = newCPULimit(cfg.CPUs); err != nil {
			return nil, fmt.Errorf("start %s: %w", p.name, err)
		}
	}
	if p.cmd.SysProcAttr, err = childAttributes(cfg.User); err == nil {
		started := make(chan error)
		go p.run(started)
		err = <-started
	}
	if err != nil {
		p.limit.release()
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

// run starts the process, reports that on started, and waits for its end. On Linux, the
// kernel kills the child when the thread that forked it ends, so this thread must do
// nothing else: the Go runtime ends a thread with a goroutine that is locked to it.
// Waiting for a child occupies a thread anyway.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	removeContainer, err := p.container.guard()
	if err == nil {
		if err = p.limit.start(p.cmd); err != nil {
			removeContainer()
		}
	}
	if err != nil {
		started <- err
		return
	}
	release, err := guard(p.cmd.Process.Pid)
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		removeContainer()
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	release()
	p.limit.release()
	removeContainer()
	close(p.done)
}

// runProcess runs a program to its end, or kills it when the context ends. The error
// holds the end of its log.
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

// PID returns the id of the process, also after its end.
func (p *Process) PID() int { return p.process().Pid }

// process returns the process; of a container, the engine's until the other is known.
func (p *Process) process() *os.Process {
	if inside := p.inside.Load(); inside != nil {
		return inside
	}
	return p.cmd.Process
}

func (p *Process) cpuLimit() string { return cmp.Or(p.container.cpuLimit(), p.limit.words()) }

// Log returns the last 16 KiB of the standard output and error.
func (p *Process) Log() string { return p.log.String() }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the process. It returns nil after exit status 0, and
// otherwise an *exec.ExitError.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends sig to the process, but not to its children. It returns
// os.ErrProcessDone if the process has ended.
func (p *Process) Signal(sig os.Signal) error { return p.process().Signal(sig) }

// Stop sends the stop signal and continues the process if it is paused. It kills the
// process if it has not ended after the timeout, and returns when it is gone. It returns
// nil if the process ended with status 0, by the stop signal or by an earlier Kill, and
// otherwise how it ended.
func (p *Process) Stop(timeout time.Duration) error {
	if err := p.Signal(p.stopSignal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Kill() // Windows has no such signal
		return nil
	}
	resume(p.process())
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		if p.isRunning() {
			p.Kill()
			return fmt.Errorf("%s did not stop within %v and was killed", p.name, timeout)
		}
	}
	if p.err == nil || p.killed.Load() || endedBy(p.cmd.ProcessState, p.stopSignal) {
		return nil
	}
	return p.ended()
}

// Kill ends the process, its group and, on Linux, its other children with SIGKILL, and
// returns when the process is gone.
func (p *Process) Kill() {
	if p.isRunning() {
		p.killed.Store(true)
		killGroup(p.process())
		if p.inside.Load() != nil { // the engine ends when it has cleaned up
			select {
			case <-p.done:
			case <-time.After(stopTimeout):
				killGroup(p.cmd.Process)
			}
		}
		<-p.done
	}
}

func (p *Process) isRunning() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ended describes an unexpected end.
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
