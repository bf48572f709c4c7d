package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// container says how to run a program of a container image. The program sees the network,
// the processes and the mounted files of this machine, so that the lab treats it like
// one that is installed: by its port, its process id and its directory.
type container struct {
	engine string // path of docker or podman
	image  string
	mounts []string // files and directories of this machine, at the same paths
	name   string   // unique
	cpus   float64  // 0: all
}

// findEngine returns the path of the container engine.
func findEngine() (string, error) {
	if runtime.GOOS != "linux" { // elsewhere engines run containers in a virtual machine
		return "", fmt.Errorf("servers of container images: %w on %s", errors.ErrUnsupported, runtime.GOOS)
	}
	for _, name := range []string{"docker", "podman"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("a container image needs docker or podman: %w, neither is on PATH", ErrNotInstalled)
}

// Pull downloads a container image, unless it is on this machine. progress gets what the
// engine writes meanwhile.
func Pull(ctx context.Context, image string, progress io.Writer) error {
	engine, err := findEngine()
	if err != nil || exec.CommandContext(ctx, engine, "image", "inspect", image).Run() == nil {
		return err
	}
	err = runProcess(ctx, ProcessConfig{Path: engine, Args: []string{"pull", image}, Stdout: progress, Stderr: progress})
	if failed, ok := errors.AsType[*startError](err); ok { // what is before the reason was in progress
		failed.log = lastLines(failed.log, 1)
	}
	if err != nil {
		return fmt.Errorf("pull image %s: %w", image, err)
	}
	return nil
}

// useImage makes s a server of the image, whose binary it finds there.
func (k *Kind) useImage(ctx context.Context, s *Server, image string) error {
	engine, err := findEngine()
	if err == nil {
		err = Pull(ctx, image, io.Discard)
	}
	if err != nil {
		return err
	}
	s.container = &container{engine: engine, image: image}
	const find = `for name; do command -v "$name" && exit; done; exit 127`
	names := strings.Split(k.binaries+k.imageBinaries, "|")
	path, err := s.output(ctx, "sh", append([]string{"-c", find, "sh"}, names...)...)
	if err != nil {
		return fmt.Errorf("find %s in image %s: %w", strings.Join(names, " or "), image, err)
	}
	s.binary = strings.TrimSpace(path)
	return nil
}

// output returns what a program writes to its standard output, and kills one that hangs.
func (s *Server) output(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var out bytes.Buffer
	err := runProcess(ctx, ProcessConfig{Path: path, Args: args, User: s.account, Stdout: &out, container: s.container})
	return out.String(), err
}

// inContainer returns how the server's programs see its files; nil: they are installed.
func (s *Server) inContainer() *container {
	if s.container == nil {
		return nil
	}
	c := *s.container
	c.mounts = []string{s.dir}
	if secret := secretFile(s.dir); isFile(secret) {
		c.mounts = append(c.mounts, secret)
	}
	return &c
}

// wrap returns the command of the engine that runs cfg in a container.
func (c *container) wrap(cfg ProcessConfig) (ProcessConfig, *container, error) {
	account, err := user.Current()
	if cfg.User != "" {
		account, err = user.Lookup(cfg.User)
	}
	if err != nil {
		return cfg, nil, err
	}
	own := *c
	own.name, own.cpus = fmt.Sprintf("sagabench-%d-%s", os.Getpid(), strings.ToLower(rand.Text())), cfg.CPUs
	args := []string{
		"run", "--rm", "--interactive", "--pull=never", "--name=" + own.name,
		"--network=host", "--pid=host", "--user=" + account.Uid + ":" + account.Gid, "--workdir=" + cmp.Or(cfg.Dir, "/"),
		// Its user and the system calls are those of an installed server.
		"--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=seccomp=unconfined", "--security-opt=label=disable",
		"--log-driver=none", "--no-healthcheck", "--pids-limit=-1",
		"--volume=/etc/passwd:/etc/passwd:ro", // initdb asks for the account's name
	}
	if strings.HasPrefix(filepath.Base(c.engine), "podman") && os.Geteuid() != 0 {
		args = append(args, "--userns=keep-id")
	}
	for _, path := range c.mounts {
		args = append(args, "--volume="+path+":"+path)
	}
	if cfg.CPUs > 0 {
		args = append(args, fmt.Sprintf("--cpus=%v", cfg.CPUs))
	}
	args = append(args, "--entrypoint="+cfg.Path, c.image)
	ready := cfg.Ready
	wrapped := ProcessConfig{
		Path: c.engine, Args: append(args, cfg.Args...), StopSignal: cfg.StopSignal,
		Stdin: cfg.Stdin, Stdout: cfg.Stdout, Stderr: cfg.Stderr,
	}
	if ready != nil {
		wrapped.Ready = func(ctx context.Context, p *Process) error {
			if err := p.findInContainer(ctx); err != nil {
				return err
			}
			return ready(ctx, p)
		}
	}
	return wrapped, &own, nil
}

// findInContainer finds the process that the engine has started.
func (p *Process) findInContainer(ctx context.Context) error {
	if p.inside.Load() != nil {
		return nil
	}
	text, err := exec.CommandContext(ctx, p.container.engine, "container", "inspect", "--format={{.State.Pid}}", p.container.name).Output()
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil || pid == 0:
		return errors.New("the container has no process yet")
	case processEnded(pid):
		return fmt.Errorf("the container's process %d is not on this machine: rootless Docker, Docker Desktop and engines of other machines are not supported", pid)
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		p.inside.Store(process)
	}
	return err
}

// guard has a watchdog remove the container when we have ended. remove removes it now.
// A nil container is none.
func (c *container) guard() (remove func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	command := []string{c.engine, "rm", "--force", "--volumes", c.name}
	release, err := startWatchdog(command...)
	return func() {
		_ = exec.Command(command[0], command[1:]...).Run() // it is gone, unless the engine's client was killed
		release()
	}, err
}

// cpuLimit says in words how the CPU is limited; empty: it is not.
func (c *container) cpuLimit() string {
	if c == nil || c.cpus == 0 {
		return ""
	}
	return fmt.Sprintf("%s --cpus: %v of %d CPUs", filepath.Base(c.engine), c.cpus, runtime.NumCPU())
}

// resolvedBinary returns the path of the server, beside which its other programs are. In an
// image they are beside a link, too.
func (s *Server) resolvedBinary() (string, error) {
	if s.container != nil {
		return s.binary, nil
	}
	return filepath.EvalSymlinks(s.binary)
}

// hasFile reports whether a program of the server is there. In an image, it is taken to be.
func (s *Server) hasFile(path string) bool { return s.container != nil || isFile(path) }
