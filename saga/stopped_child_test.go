package saga_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/redisstore"
	"sagabench/store/sqlstore"
)

// coordinatorVariable makes this test binary a coordinator process with clients
// of its own. It holds the process's name and the URLs of the store's server and of
// the participants.
const coordinatorVariable = "SAGABENCH_SAGA_TEST_COORDINATOR"

// What a coordinator process is set to.
const (
	stoppedLease = 200 * time.Millisecond
	stoppedLimit = 80 * time.Millisecond // for one call of a branch
	// stoppedOutOfTime leaves whoever takes a saga over some calls, and not always
	// enough to end it.
	stoppedOutOfTime = 240 * time.Millisecond
	stoppedClients   = 16
	stoppedSteps     = 3
)

// coordinatorMain is the coordinator process: it runs sagas until it is told to
// end (SIGTERM), and then until all of its clients have their answers. What it
// was told by the store, and what it told its clients, it writes to stdout.
func coordinatorMain(arguments string) int {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := coordinate(ctx, arguments, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func coordinate(ctx context.Context, arguments string, stdout io.Writer) error {
	var name, url, participants string
	if _, err := fmt.Sscan(arguments, &name, &url, &participants); err != nil {
		return fmt.Errorf("reading %s: %w", coordinatorVariable, err)
	}
	s, err := openStopped(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	caller, err := branch.NewHTTP(branch.HTTPConfig{})
	if err != nil {
		return err
	}
	defer caller.Close()
	log := &told{to: stdout}
	c, err := saga.New(&telling{s, log}, signing{caller, name}, stoppedConfig())
	if err != nil {
		return err
	}
	failed := make(chan error, stoppedClients)
	var clients sync.WaitGroup
	for client := range stoppedClients {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := runUntilAnswered(c, sagaOf(client, n, participants), log); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	clients.Wait()
	c.Close(context.Background())
	close(failed)
	return <-failed
}

// openStopped opens the store of the test, under the shortest timeout that it
// takes. A batch's is shorter than a stop: of what was on its way then the outcome
// is unknown.
func openStopped(ctx context.Context, url string) (store.Store, error) {
	if strings.HasPrefix(url, "redis") {
		cfg := redisstore.DefaultConfig()
		cfg.URL, cfg.Timeout = url, stoppedLease
		return redisstore.Open(ctx, cfg)
	}
	cfg := sqlstore.DefaultConfig()
	cfg.URL, cfg.Timeout, cfg.Lease = url, time.Second, stoppedLease
	return sqlstore.Open(ctx, cfg)
}

func stoppedConfig() saga.Config {
	cfg := saga.DefaultConfig()
	cfg.Lease, cfg.RequestTimeout = stoppedLease, stoppedLimit
	cfg.RetryInterval, cfg.PollInterval = 20*time.Millisecond, 20*time.Millisecond
	cfg.Commit.Timeout = stoppedLease
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// sagaOf is saga n of a client. Both processes have the same clients, so each
// saga is submitted to both, and both say how it ended.
func sagaOf(client, n int, participants string) *saga.Saga {
	s := &saga.Saga{GID: fmt.Sprintf("c%d-%d", client, n), Steps: make([]saga.Step, stoppedSteps)}
	for i := range s.Steps {
		s.Steps[i] = saga.Step{Action: participants, Compensate: participants}
	}
	switch n % 4 {
	case 1: // all at once
		s.Concurrent = true
	case 2: // the last waits for both others
		s.Concurrent = true
		s.Steps[2].After = []int{0, 1}
	case 3: // two wait for the first
		s.Concurrent = true
		s.Steps[1].After, s.Steps[2].After = []int{0}, []int{0}
	}
	if n%3 == 0 {
		s.Timeout = stoppedOutOfTime
	}
	return s
}

// runUntilAnswered asks for a saga as a client does who does not give up. An
// error is one that no client should see.
func runUntilAnswered(c *saga.Coordinator, s *saga.Saga, log *told) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience/2)
		result, err := c.Run(ctx, s)
		cancel()
		switch {
		case err == nil:
			log.line(line{kind: "answered", gid: s.GID, status: result.Status})
			return nil
		case errors.Is(err, saga.ErrUnknown), errors.Is(err, context.DeadlineExceeded):
			log.line(line{kind: "unanswered", gid: s.GID})
		default:
			return err
		}
	}
}

// line is one event in a coordinator process.
//
//	created     the store acknowledged a new saga
//	wrote       it acknowledged a transition of this epoch, with the marks set
//	released    the same, and the saga was let go
//	refused     it refused a transition of this epoch
//	claimed     it handed the saga over under this epoch, as it then was
//	answered    a client was told how the saga ended
//	unanswered  a client was told that nobody knows
type line struct {
	at            time.Time
	by, kind, gid string
	epoch         uint32
	status        store.Status
	marks         store.Marks
}

func (l line) String() string {
	return fmt.Sprintf("%s %s %d %c %s", l.kind, l.gid, l.epoch, cmp.Or(l.status, '-'), cmp.Or(l.marks, "-"))
}

func parseLine(by, text string) (line, error) {
	l := line{by: by}
	var at int64
	_, err := fmt.Sscanf(text, "%d %s %s %d %c %s", &at, &l.kind, &l.gid, &l.epoch, &l.status, &l.marks)
	l.at = time.Unix(0, at)
	return l, err
}

// within reports whether a saga that stands like this can have had what l wrote.
func (l line) within(status store.Status, marks store.Marks) bool {
	for b := range store.Branch(len(l.marks)) {
		if l.marks.At(b) != store.MarkPending && l.marks.At(b) != marks.At(b) {
			return false
		}
	}
	return l.status == status || l.status.CanBecome(status)
}

// told is where a process writes its lines, each at once: it may be stopped at
// any moment.
type told struct {
	mu sync.Mutex
	to io.Writer
}

func (t *told) line(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintln(t.to, time.Now().UnixNano(), l)
}

// telling is a store that tells what it answered.
type telling struct {
	store.Store
	log *told
}

func (s *telling) Apply(ctx context.Context, changes []store.Change) []error {
	errs := s.Store.Apply(ctx, changes)
	for i, change := range changes {
		t, ok := change.(*store.Transition)
		switch {
		case !ok && errs[i] == nil:
			s.log.line(line{kind: "created", gid: change.Gid(), epoch: 1})
		case !ok:
		case errs[i] == nil:
			l := line{kind: "wrote", gid: t.GID, epoch: t.Epoch, status: t.To, marks: store.NewMarks(stoppedSteps)}
			if t.Release {
				l.kind = "released"
			}
			for _, m := range t.Marks {
				l.marks = l.marks.With(m.Branch, m.Mark)
			}
			s.log.line(l)
		case errors.Is(errs[i], store.ErrConflict):
			s.log.line(line{kind: "refused", gid: t.GID, epoch: t.Epoch})
		}
	}
	return errs
}

func (s *telling) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	records, err := s.Store.ClaimDue(ctx, owner, lease, limit)
	for _, r := range records {
		s.log.line(line{kind: "claimed", gid: r.GID, epoch: r.Epoch, status: r.Status, marks: r.Marks})
	}
	return records, err
}

// signing says with every call which process makes it, and when it began to.
type signing struct {
	*branch.HTTP
	name string
}

// The headers that a call is signed with.
const (
	callerHeader = "Called-By"
	sinceHeader  = "Called-At" // ns since 1970
)

func (s signing) Call(ctx context.Context, c saga.Call) (machine.Outcome, string) {
	c.Headers = map[string]string{callerHeader: s.name, sinceHeader: strconv.FormatInt(time.Now().UnixNano(), 10)}
	return s.HTTP.Call(ctx, c)
}

// participants play all branches and keep a journal.
type participants struct {
	mu      sync.Mutex
	journal []*called
	count   map[string]int // of the calls of each process
}

// called is a call of a branch.
type called struct {
	by, gid      string
	branch       store.Branch
	since        time.Time // when its process began to make it
	began, ended time.Time // when it was here; ended is zero while it is
	answer       int       // HTTP status
}

func (p *participants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	step, err := strconv.Atoi(query.Get("branch_id"))
	since, err2 := strconv.ParseInt(r.Header.Get(sinceHeader), 10, 64)
	if err != nil || err2 != nil {
		http.Error(w, "not a call of a branch", http.StatusBadRequest)
		return
	}
	c := &called{by: r.Header.Get(callerHeader), gid: query.Get("gid"), branch: store.Action(step - 1), since: time.Unix(0, since)}
	if query.Get("op") == "compensate" {
		c.branch = store.Compensation(step - 1)
	}
	p.mu.Lock()
	c.began = time.Now()
	p.journal = append(p.journal, c)
	p.count[c.by]++
	p.mu.Unlock()

	time.Sleep(5*time.Millisecond + rand.N(15*time.Millisecond)) // what a branch takes to do its work
	answer := http.StatusOK
	switch dice := rand.IntN(100); {
	case dice < 4:
		answer = http.StatusTooEarly
	case dice < 8:
		answer = http.StatusInternalServerError
	case c.branch == store.Action(stoppedSteps-1) && crc32.ChecksumIEEE([]byte(c.gid))%10 == 0:
		answer = http.StatusConflict
	}
	p.mu.Lock()
	c.answer, c.ended = answer, time.Now()
	p.mu.Unlock()
	w.WriteHeader(answer)
}

func (p *participants) by(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[name]
}
