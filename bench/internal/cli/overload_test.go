package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"github.com/stretchr/testify/require"

	"sagabench/saga/httpapi"
	"sagabench/store"
	"sagabench/store/open"
)

// fullOverload makes the test below as large as a bad day. It then wants 12,000 open
// files for itself, and takes a minute.
const fullOverload = "TEST_FULL_OVERLOAD"

// overload is what clients do to a server at once.
type overload struct {
	files    int // that the server may have open
	submits  int
	inFlight int           // as many sagas the server takes on
	holds    time.Duration // at most; until all clients have their answers
	idle     int
	alive    time.Duration // within which /livez has to answer
}

// One client after another does what stops a server: submits to a branch that hangs,
// bodies that are dear to decode, connections that say nothing. Whether it lives can
// be asked throughout, its memory stays bounded, and what it acknowledged it keeps.
func TestCoordinator_BearsItsClients(t *testing.T) {
	t.Parallel()
	size := overload{files: 256, submits: 900, inFlight: 500, holds: patience, idle: 400, alive: patience}
	if os.Getenv(fullOverload) != "" {
		size = overload{files: 1024, submits: 10_000, inFlight: 10_000, holds: 40 * time.Second, idle: 5_000, alive: time.Second}
	}
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	branch := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		case <-time.After(size.holds):
		}
	}))
	t.Cleanup(branch.Close)
	t.Cleanup(release)

	dir := filepath.Join(t.TempDir(), "data")
	p := newProgram(t, "SAGABENCH_COORDINATOR_MAX_IN_FLIGHT="+strconv.Itoa(size.inFlight), "SAGABENCH_PEBBLE_DIR="+dir)
	s := p.startWith(func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, size.files), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, "coordinator", "pebble", "--listen", "127.0.0.1:0")
	line, err := s.err.find(soon(t), "time=")
	require.NoError(t, err)
	require.Contains(t, line, "raise the limit of open files")
	server, err := process.NewProcess(int32(s.cmd.Process.Pid))
	require.NoError(t, err)

	var watched sync.WaitGroup
	over := make(chan struct{})
	var slowest time.Duration
	var dead, asked, again int
	var resident uint64
	watched.Go(func() {
		client := http.Client{Timeout: size.alive, Transport: &http.Transport{DisableKeepAlives: true}}
		for {
			began := time.Now()
			response, err := client.Get(s.url + "/livez")
			for err != nil && time.Since(began) < size.alive { // its connection made room for another
				client.Timeout = size.alive - time.Since(began)
				response, err = client.Get(s.url + "/livez")
				client.Timeout = size.alive
				again++
			}
			asked++
			if err != nil || response.StatusCode != http.StatusOK {
				dead++
				t.Log(err)
			}
			if err == nil {
				response.Body.Close()
			}
			slowest = max(slowest, time.Since(began))
			if m, err := server.MemoryInfo(); err == nil {
				resident = max(resident, m.RSS)
			}
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})

	var clients sync.WaitGroup
	for range size.idle {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
	}
	dear := `{"gid":"dear","trans_type":"saga","steps":[` + strings.Repeat(`{},`, httpapi.MaxBodyBytes/3-100) + `{}]}`
	for range 8 {
		clients.Go(func() {
			status, body := persist(t, s.url, dear)
			if status != http.StatusBadRequest {
				t.Errorf("%d: %s", status, body)
			}
		})
	}
	var next, refused atomic.Int64
	acknowledged := make([]bool, size.submits)
	for range 50 {
		clients.Go(func() {
			for i := next.Add(1) - 1; i < int64(size.submits); i = next.Add(1) - 1 {
				body := fmt.Sprintf(`{"gid":"saga-%d","trans_type":"saga","request_timeout":60,"steps":[{"action":%q}],"payloads":["1"]}`, i, branch.URL)
				switch status, body := persist(t, s.url, body); {
				case status == http.StatusOK:
					acknowledged[i] = true
				case strings.Contains(body, "too many sagas"):
					refused.Add(1)
				default:
					t.Errorf("%d: %s", status, body)
				}
			}
		})
	}
	clients.Wait()
	goroutines, err := metric(t.Context(), s.url, "go_goroutines")
	require.NoError(t, err)
	release()
	requireQuiet(t, s.url)
	close(over)
	watched.Wait()
	s.stop()

	target, err := open.Parse("pebble:"+dir, openConfig(t))
	require.NoError(t, err)
	kept, err := target.Open(t.Context())
	require.NoError(t, err)
	defer kept.Close()
	n := int64(0)
	for i, ok := range acknowledged {
		record, err := kept.Get(t.Context(), fmt.Sprintf("saga-%d", i))
		if !ok {
			require.ErrorIs(t, err, store.ErrNotFound)
			continue
		}
		n++
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, record.Status)
	}
	t.Logf("%d acknowledged, %d refused; asked %d times, %d of them again, at most %v; %d MiB, %.0f goroutines", n, refused.Load(), asked, again, slowest, resident>>20, goroutines)
	require.GreaterOrEqual(t, n, int64(size.inFlight)*9/10)
	require.Zero(t, dead, "of %d", asked)
	require.Less(t, resident, uint64(memoryFactor()*512*(1<<20)))
	if size.submits > size.inFlight {
		require.Positive(t, refused.Load())
	}
}

// persist submits until there is an answer about the body: one that is turned away,
// or whose connection made room for another, comes again.
func persist(t *testing.T, url, body string) (status int, text string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && t.Context().Err() == nil; {
		response, err := client.Post(url+"/api/dtmsvr/submit", "application/json", strings.NewReader(body))
		if err != nil {
			text = err.Error()
			time.Sleep(10 * time.Millisecond)
			continue
		}
		content, _ := io.ReadAll(response.Body)
		response.Body.Close()
		status, text = response.StatusCode, string(content)
		if status != http.StatusServiceUnavailable || strings.Contains(text, "too many sagas") {
			return status, text
		}
		time.Sleep(10 * time.Millisecond)
	}
	return status, text
}
