package server

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/store"
)

func TestNew_NamesTheSettingThatIsWrong(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config, *Deps){
		"max wait: 0s":               func(c *Config, _ *Deps) { c.MaxWait = 0 },
		"read: 0s":                   func(c *Config, _ *Deps) { c.Read = 0 },
		"branch conns: 0":            func(c *Config, _ *Deps) { c.BranchConns = 0 },
		"max in flight: 0":           func(_ *Config, d *Deps) { d.Saga.MaxInFlight = 0 },
		"max conns: 0":               func(c *Config, _ *Deps) { c.MaxConns = 0 },
		"grace: -1s":                 func(c *Config, _ *Deps) { c.Grace = -time.Second },
		"steps: 0":                   func(c *Config, _ *Deps) { c.Scenario.Steps = 0 },
		`branches: "both"`:           func(c *Config, _ *Deps) { c.Scenario.Branches = "both" },
		"lease: 1ns":                 func(_ *Config, d *Deps) { d.Saga.Lease = 1 },
		"max batch: 0":               func(_ *Config, d *Deps) { d.Saga.Commit.MaxBatch = 0 },
		`"http://x" is no host name`: func(c *Config, _ *Deps) { c.BranchAllow = []string{"http://x"} },
	} {
		right, _ := settings(nil)
		listener, err := Listen(right)
		require.NoError(t, err)
		cfg, deps := settings(testkit.OpenPebble(t), change)
		deps.Listener = listener
		_, err = New(cfg, deps)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.NoError(t, listener.Close())
	}
}

// held is a store whose Apply waits to be released, or for its deadline.
type held struct {
	store.Store
	entered chan struct{} // gets one element per Apply
	release chan struct{} // closed to let all go on
}

func hold(s store.Store) *held {
	return &held{Store: s, entered: make(chan struct{}, 1000), release: make(chan struct{})}
}

func (h *held) Apply(ctx context.Context, changes []store.Change) []error {
	h.entered <- struct{}{}
	select {
	case <-h.release:
		return h.Store.Apply(ctx, changes)
	case <-ctx.Done():
		errs := make([]error, len(changes))
		for i := range errs {
			errs[i] = ctx.Err()
		}
		return errs
	}
}

// async makes a request that is under way when it returns; the store must be
// held.
func (at *site) async(h *held, path string) <-chan response {
	done := make(chan response, 1)
	go func() {
		r, err := at.try(http.MethodGet, path, "")
		if err != nil {
			r.body = err.Error()
		}
		done <- r
	}()
	<-h.entered
	return done
}

func TestRun_FinishesWhatIsUnderWayWhenToldToStop(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h)
	done := at.async(h, "/bench/saga?steps=2&branches=http")
	at.stop()
	// Wrong, so that none of these is a saga as long as the server takes them.
	require.Equal(t, "the server is stopping", at.eventually("/bench/saga?steps=0", http.StatusServiceUnavailable).reply(t).Message)
	require.Empty(t, done)

	close(h.release)
	r := <-done
	require.Equal(t, http.StatusOK, r.status, r.body)
	at.waitEnd()
	_, err := at.try(http.MethodGet, "/healthz", "")
	require.Error(t, err, "the port is closed")
}

func TestRun_LetsGoWhatOutlastsTheGrace(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h, func(c *Config, d *Deps) {
		c.Grace = 50 * time.Millisecond
		d.Saga.Commit.Timeout = time.Hour // so that nothing else ends the request
	})
	done := at.async(h, "/bench/saga")
	at.stop()
	r := <-done
	close(h.release)
	require.Equal(t, http.StatusServiceUnavailable, r.status, r.body)
	require.NotEmpty(t, r.reply(t).GID)
	require.Contains(t, r.reply(t).Message, errStopped.Error())
	at.waitEnd()
}

func TestRun_StopsUnderLoadWithNothingUnfinished(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s)
		var clients sync.WaitGroup
		var ended, refused, other atomic.Int64
		for range 16 {
			clients.Go(func() {
				for {
					r, err := at.try(http.MethodGet, "/bench/saga?branches=http&fail=0.2", "")
					switch {
					case err != nil: // the port is closed
						return
					case r.status == http.StatusOK || r.status == http.StatusConflict:
						if ended.Add(1) == 100 {
							at.stop()
						}
					case strings.Contains(r.body, "the server is stopping"):
						refused.Add(1)
					default:
						other.Add(1)
						t.Error(r.body)
					}
				}
			})
		}
		clients.Wait()
		at.waitEnd()
		require.Zero(t, other.Load())
		require.EqualValues(t, ended.Load(), count(t, s), "every saga in the store was answered for, and no other")
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, stats.Unfinished)
		t.Log(ended.Load(), "ended,", refused.Load(), "refused")
	})
}

func TestRunSaga_AnswersWhileTheStoreHangs(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h, func(_ *Config, d *Deps) {
		d.Saga.Commit.Timeout = 100 * time.Millisecond
	})
	r := at.get("/bench/saga")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.NotEmpty(t, r.reply(t).GID)
	require.Contains(t, r.reply(t).Message, "the store did not confirm the saga")
	close(h.release)
}

// broken is a store whose Stats panics.
type broken struct{ store.Store }

func (broken) Stats(context.Context) (store.Stats, error) { panic("out of order") }

func TestServer_AnswersAPanic(t *testing.T) {
	t.Parallel()
	at := start(t, broken{testkit.OpenPebble(t)})
	for range 2 {
		r := at.get("/healthz")
		require.Equal(t, http.StatusInternalServerError, r.status)
		require.Equal(t, "internal error; the server's log has the details", r.reply(t).Message)
	}
	require.Contains(t, at.log.String(), "out of order")
	require.Contains(t, at.log.String(), "stats.go", "the stack")
	require.Equal(t, http.StatusOK, at.get("/bench/saga").status)
}

func TestServer_ServesProfilesOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config, *Deps){"on loopback": everything, "with tokens": withToken} {
		at := start(t, testkit.OpenPebble(t), change, func(c *Config, _ *Deps) { c.Pprof = true })
		profile := func(path string) response { return at.asAdmin(http.MethodGet, path, "") }
		require.Contains(t, profile("/debug/pprof/").body, "goroutine", name)
		require.True(t, strings.HasPrefix(profile("/debug/pprof/goroutine?debug=1").body, "goroutine profile: total"))
		require.Equal(t, http.StatusOK, profile("/debug/pprof/cmdline").status)
		require.Equal(t, http.StatusForbidden, at.get("/debug/pprof/cmdline").status, "they are for the admin")
	}
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.AdminTokens = secret.NewTokens(theAdminToken) })
	require.Equal(t, http.StatusNotFound, at.asAdmin(http.MethodGet, "/debug/pprof/cmdline", "").status)

	cfg := DefaultConfig()
	cfg.Pprof = true
	_, err := Listen(cfg)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "pprof: profiles are for the admin: set SAGABENCH_SERVER_ADMIN_TOKEN")
}

func TestServer_ReachesItselfOnAnAddressThatOthersReach(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), withToken, func(c *Config, _ *Deps) { c.Listen = ":0" })
	require.True(t, strings.HasPrefix(at.server.URL(), "http://127.0.0.1:"), at.server.URL())
	require.Equal(t, http.StatusOK, at.get("/bench/saga?branches=http").status)
}

func TestVegetaCommand_DrivesTheServer(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, token := range []secret.Text{{}, secret.New(theToken)} {
		driveWithVegeta(t, token)
	}
}

func driveWithVegeta(t *testing.T, token secret.Text) {
	s := testkit.OpenPebble(t)
	at := start(t, s, func(c *Config, _ *Deps) { c.Tokens = secret.NewTokens(token.Reveal()) })
	c := VegetaCommand{at.server.URL(), Scenario{Steps: 1, Branches: BranchesHTTP}.Query(), token.IsSet()}
	run := func(line string) string {
		require.NotContains(t, line, theToken)
		command := exec.Command("sh", "-c", strings.Replace(line, "-duration=10s", "-duration=200ms", 1))
		command.Env = append(os.Environ(), "SAGABENCH_SERVER_TOKEN="+token.Reveal())
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
		return string(output)
	}
	output := run(c.Closed(8))
	require.Regexp(t, `Status Codes +\[code:count\] +200:[1-9]\d* +\n`, output)
	require.Regexp(t, `Success +\[ratio\] +100\.00%`, output)
	open := c.Open()
	require.Equal(t, strings.Replace(open[0], "before", "after", 1), open[2])
	require.Equal(t, token.IsSet(), strings.Contains(open[0], `-H "Authorization: Bearer ${SAGABENCH_SERVER_TOKEN%% *}" http`))
	require.Contains(t, run(strings.TrimSuffix(open[1], " >app.bin")+" | go tool vegeta report"), "100.00%")
	many := strings.NewReplacer("http://APP1:PORT", c.URL, "http://APP2:PORT", c.URL).Replace(c.ManyHosts())
	require.Contains(t, run(strings.TrimSuffix(many, ` >"$HOSTNAME.bin"`)+" | go tool vegeta report"), "100.00%")
	require.NotZero(t, count(t, s))
	require.NotContains(t, VegetaCommand{URL: "http://127.0.0.1:1"}.Closed(8), "?")
}

func TestServer_ThePage_ShowsWhatTheCoordinatorDid(t *testing.T) {
	t.Parallel()
	for _, bench := range []bool{true, false} {
		at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.Bench = bench })
		require.Equal(t, http.StatusFound, at.ask(at.bare(http.MethodGet, "/")).status)
		r := at.do(http.MethodPost, submitPath, submission(map[string]any{
			"gid": "watched", "wait_result": false, "steps": []any{map[string]string{"action": "http://127.0.0.1:1/away"}},
		}))
		require.Equal(t, http.StatusOK, r.status, r.body)
		at.heldUp("watched")
		page := at.get("/ui/sagas/watched")
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "no answer</span> step 1, action")
		require.Contains(t, at.get("/ui").body, "watched")
		require.Equal(t, bench, at.get("/bench/saga").status == http.StatusOK)
	}
}
