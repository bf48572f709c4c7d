//go:build linux

package saga_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
)

// pair is two coordinator processes on one store.
type pair struct {
	name, url string
	stops     int // still to be made
	nodes     [2]*process
	all       *participants
	server    *httptest.Server

	stopped bool
	before  int // calls of the process that is not stopped, when the other was
}

func (p *pair) start(t *testing.T) {
	p.all = &participants{count: map[string]int{}}
	p.server = httptest.NewServer(p.all)
	t.Cleanup(p.server.Close)
	p.nodes = [2]*process{{name: "A"}, {name: "B"}}
	for _, node := range p.nodes {
		node.start(t, strings.Join([]string{node.name, p.url, p.server.URL}, " "))
	}
	for _, node := range p.nodes {
		untilWithin(t, busyPatience, node.name+" calls a branch", func() bool { return p.all.by(node.name) > 0 })
	}
}

func (p *pair) other(i int) string { return p.nodes[(i+1)%2].name }

func (p *pair) goesOn() bool { return p.stops > 0 }

// stop makes stop i, and goOn ends it. Stops during which the other process does nothing do
// not count. After the last of them the processes end.
func (p *pair) stop(t *testing.T, i int) {
	if p.stopped = p.goesOn(); !p.stopped {
		p.end()
		return
	}
	p.before = p.all.by(p.other(i))
	p.nodes[i%2].stop(t)
}

func (p *pair) goOn(t *testing.T, i int) {
	if !p.stopped {
		return
	}
	if p.all.by(p.other(i)) > p.before {
		p.stops--
	}
	require.NoError(t, p.nodes[i%2].Signal(syscall.SIGCONT))
}

func (p *pair) end() {
	for _, node := range p.nodes {
		_ = node.Signal(syscall.SIGTERM) // again, or when it has ended
	}
}

// process is a coordinator process.
type process struct {
	*lab.Process
	name string
	said bytes.Buffer // its lines; to be read when it has ended
}

func (p *process) start(t *testing.T, arguments string) {
	self, err := os.Executable()
	require.NoError(t, err)
	p.Process, err = lab.StartProcess(t.Context(), lab.ProcessConfig{
		Path: self, Env: append(os.Environ(), coordinatorVariable+"="+arguments), Stdout: &p.said, Stderr: os.Stderr,
	})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
}

func (p *process) stop(t *testing.T) {
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	untilWithin(t, busyPatience, p.name+" is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		require.NoError(t, err)
		_, state, _ := bytes.Cut(stat, []byte(") "))
		return state[0] == 'T'
	})
}
